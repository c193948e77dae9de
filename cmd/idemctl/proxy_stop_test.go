//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A stopped proxy takes nothing new and ends what it has.
func TestProxyDrains(t *testing.T) {
	t.Parallel()
	s, service := newShop(t), newWorks(t)
	f := s.proxy(service.URL, "--scope", "shop")
	answers := make(chan answer, 1)
	r := request(t, http.MethodPost, f.url, "k", "x")
	go func() {
		a, err := send(r)
		a.body += fmt.Sprint(err)
		answers <- a
	}()
	<-service.begun
	require.NoError(t, f.Process.Signal(syscall.SIGTERM))
	requireRefuses(t, f)
	close(service.let)
	require.Equal(t, answer{http.StatusCreated, "executed", "done<nil>"}, <-answers)
	code, said := f.end(t)
	require.Zero(t, code, said)
}

// A connection on which nothing was asked is no reason to wait.
func TestProxyStopsWithIdleConnections(t *testing.T) {
	t.Parallel()
	s, service := newShop(t), newWorks(t)
	f := s.proxy(service.URL, "--scope", "shop", "--drain", "50ms")
	c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, f.Process.Signal(syscall.SIGTERM))
	code, said := f.end(t)
	require.Zero(t, code, said)
}

func requireRefuses(t *testing.T, f *front) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, patience, 5*time.Millisecond)
}

func TestProxyCutsOff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		drain string
		code  int
		again bool // a second signal
		said  string
	}{
		{"after the time to drain", "50ms", 1, false, "idemctl: 1 request was still running after 50ms and cut off\n"},
		{"by a second signal", "1h", -1, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, service := newShop(t), newWorks(t)
			f := s.proxy(service.URL, "--scope", "shop", "--drain", tt.drain)
			broken := make(chan bool, 1)
			r := request(t, http.MethodPost, f.url, "k", `{"amount": 120}`)
			go func() {
				a, err := send(r)
				broken <- err != nil || a.code == http.StatusBadGateway // there may be time to say so
			}()
			<-service.begun
			require.NoError(t, f.Process.Signal(syscall.SIGTERM))
			requireRefuses(t, f)
			if tt.again {
				require.NoError(t, f.Process.Signal(syscall.SIGTERM))
			}
			code, said := f.end(t)
			require.Equal(t, tt.code, code, said)
			require.Contains(t, said, tt.said)
			require.True(t, <-broken)
			f = s.proxy(service.URL, "--scope", "shop")
			requireInterrupted(t, post(t, f.url, "k"))
			require.EqualValues(t, 1, service.count.Load())
		})
	}
}
