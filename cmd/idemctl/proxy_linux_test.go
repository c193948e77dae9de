package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// peakMemory is the most memory that a process has had, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, m)
	n, err := strconv.Atoi(string(m[1]))
	require.NoError(t, err)
	return n << 10
}

// zeros is a body without an end of its own.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A large upload that is not protected passes without being held.
func TestProxyUpload(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	s, service := newShop(t), newWorks(t)
	var got atomic.Int64
	service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Store(n)
		w.WriteHeader(http.StatusCreated)
	})
	f := s.proxy(service.URL, "--scope", "shop")
	upload := func(body io.Reader) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, f.url+"/file", body)
		require.NoError(t, err)
		a, err := send(r)
		require.NoError(t, err)
		require.Equal(t, answer{http.StatusCreated, "", ""}, a)
	}
	upload(bytes.NewReader(make([]byte, 1<<20)))
	before := peakMemory(t, f.Process.Pid)
	upload(io.LimitReader(zeros{}, size))
	require.EqualValues(t, size, got.Load())
	require.Less(t, peakMemory(t, f.Process.Pid)-before, size/4)
}
