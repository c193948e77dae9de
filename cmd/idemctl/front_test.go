//go:build unix

package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a process may take for what it does at once.
const patience = 30 * time.Second

// front is an idemctl proxy, or a script with one in it.
type front struct {
	*exec.Cmd
	url   string
	lines chan string // of both outputs
	said  strings.Builder
}

// command starts a program that prints to one pipe, in a session of its own.
func command(t *testing.T, dir string, env []string, name string, args ...string) *front {
	t.Helper()
	f := &front{Cmd: exec.Command(name, args...), lines: make(chan string, 100)}
	f.Dir, f.Env = dir, append(os.Environ(), env...)
	f.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	f.Stdout, f.Stderr = w, w
	require.NoError(t, f.Start())
	require.NoError(t, w.Close())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(f.lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			f.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-f.Process.Pid, syscall.SIGKILL) // it has ended unless the test has failed
		for range f.lines {
		}
		<-ended
		_ = r.Close()
	})
	return f
}

// await reads lines until one has the prefix, and returns what follows it.
func (f *front) await(t *testing.T, prefix string) string {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line, ok := <-f.lines:
			require.True(t, ok, "it ended without %q and said:\n%s", prefix, &f.said)
			f.said.WriteString(line + "\n")
			if rest, found := strings.CutPrefix(line, prefix); found {
				return rest
			}
		case <-limit:
			require.Fail(t, "nothing came", "waiting for %q, it said:\n%s", prefix, &f.said)
		}
	}
}

// end waits and returns the exit code, -1 for a signal, and all it has said.
func (f *front) end(t *testing.T) (code int, said string) {
	t.Helper()
	limit := time.AfterFunc(patience, func() { _ = f.Process.Kill() })
	defer limit.Stop()
	for line := range f.lines {
		f.said.WriteString(line + "\n")
	}
	_ = f.Wait() // the code tells
	return f.ProcessState.ExitCode(), f.said.String()
}

// kill ends it without warning.
func (f *front) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, f.Process.Kill())
	f.end(t)
}

// proxy starts a proxy in front of a service and waits until it listens.
func (s *shop) proxy(to string, args ...string) *front {
	s.t.Helper()
	args = append([]string{"proxy", "--listen", "127.0.0.1:0", "--to", to}, args...)
	f := command(s.t, s.dir, []string{"IDEM_DB=" + filepath.Join(s.dir, "idem.db")}, "idemctl", args...)
	f.url, _, _ = strings.Cut(f.await(s.t, "idemctl: listening on "), ",")
	f.await(s.t, "idemctl: protecting ")
	return f
}

// request makes one with a key.
func request(t *testing.T, method, url, key, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Idempotency-Key", key)
	return r
}

// answer is what came back.
type answer struct {
	code   int
	status string // Idempotency-Status
	body   string
}

func send(r *http.Request) (answer, error) {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Idempotency-Status"), string(body)}, err
}

func post(t *testing.T, url, key string) answer {
	t.Helper()
	a, err := send(request(t, http.MethodPost, url, key, `{"amount": 120}`))
	require.NoError(t, err)
	return a
}

func requireInterrupted(t *testing.T, a answer) {
	t.Helper()
	require.Equal(t, http.StatusConflict, a.code, a.body)
	require.Equal(t, "interrupted", a.status)
	require.Contains(t, a.body, "urn:idem:problem:interrupted")
}

// works is a service that begins to work and goes on when it is let.
type works struct {
	*httptest.Server
	count atomic.Int32
	begun chan struct{}
	let   chan struct{}
}

func newWorks(t *testing.T) *works {
	s := &works{begun: make(chan struct{}, 10), let: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.count.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		s.begun <- struct{}{}
		select {
		case <-s.let:
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}
