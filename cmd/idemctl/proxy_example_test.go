//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/needs"
)

// example is a run of examples/proxy/run.sh.
type example struct {
	*front
	proxyPID int
}

func startExample(t *testing.T, dir string) *example {
	t.Helper()
	idemctl, err := exec.LookPath("idemctl")
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	script, err := filepath.Abs(filepath.Join("..", "..", "examples", "proxy", "run.sh"))
	require.NoError(t, err)
	e := &example{front: command(t, dir, []string{"IDEMCTL=" + idemctl, "SERVICE_PORT=" + port, "LISTEN=127.0.0.1:0"}, script, dir)}
	for found := 0; found < 3; { // in no order
		line := e.await(t, "")
		switch {
		case strings.HasPrefix(line, "proxy: pid "):
			_, err := fmt.Sscanf(line, "proxy: pid %d,", &e.proxyPID)
			require.NoError(t, err)
		case strings.HasPrefix(line, "idemctl: listening on "):
			e.url, _, _ = strings.Cut(strings.TrimPrefix(line, "idemctl: listening on "), ",")
		case strings.HasPrefix(line, "service: http"):
		default:
			continue
		}
		found++
	}
	return e
}

// curls sends the charge of the example ten times at once and counts the answers.
func (e *example) curls(t *testing.T) map[answer]int {
	t.Helper()
	answers := make(chan answer, 10)
	var wg sync.WaitGroup
	for range cap(answers) {
		wg.Go(func() {
			out, err := exec.CommandContext(t.Context(), "curl", "-sS", "-i", e.url+"/charges", "-H", "Idempotency-Key: order-1042",
				"-H", "Prefer: wait=10", "-H", "Content-Type: application/json", "-d", `{"amount": 120}`).CombinedOutput()
			if err != nil {
				answers <- answer{status: err.Error(), body: string(out)}
				return
			}
			resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(out)), nil)
			if err != nil {
				answers <- answer{status: err.Error(), body: string(out)}
				return
			}
			body, _ := io.ReadAll(resp.Body)
			answers <- answer{resp.StatusCode, resp.Header.Get("Idempotency-Status") + " " + resp.Header.Get("Location"), string(body)}
		})
	}
	wg.Wait()
	close(answers)
	counts := make(map[answer]int)
	for a := range answers {
		counts[a]++
	}
	return counts
}

// What examples/proxy/README.md tells: a service in Python is asked ten times at
// once, and again after the proxy was killed, and does its work once.
func TestProxyExample(t *testing.T) {
	t.Parallel()
	needs.Programs(t, "python3", "curl")
	s := newShop(t)
	const body = "{\"number\": 1, \"amount\": 120}\n"

	e := startExample(t, s.dir)
	require.Equal(t, map[answer]int{
		{http.StatusCreated, "executed /charges/1", body}: 1, {http.StatusCreated, "replayed /charges/1", body}: 9,
	}, e.curls(t))
	store := filepath.Join(s.dir, "proxy.db")
	code, _, errOut := s.run("ls", "--db", store)
	require.Equal(t, 6, code)
	require.Contains(t, errOut, "pid "+strconv.Itoa(e.proxyPID)+" ")
	require.NoError(t, syscall.Kill(e.proxyPID, syscall.SIGKILL))
	e.end(t)

	e = startExample(t, s.dir)
	require.Equal(t, map[answer]int{{http.StatusCreated, "replayed /charges/1", body}: 10}, e.curls(t))
	require.NoError(t, e.Process.Signal(syscall.SIGTERM))
	e.end(t)
	require.Equal(t, []string{"1", "120"}, s.lines("ledger"))
	code, out, _ := s.run("ls", "--db", store)
	require.Zero(t, code)
	require.Regexp(t, `^shop/order-1042\tcompleted\t[^\n]*\n$`, out)
}
