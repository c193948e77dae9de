//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shop is a directory with a store in it that idemctl processes share.
type shop struct {
	t   *testing.T
	dir string
}

func newShop(t *testing.T) *shop { return &shop{t: t, dir: t.TempDir()} }

// child is an idemctl process.
type child struct {
	*exec.Cmd
	out *bufio.Reader
	err *bytes.Buffer
}

// start starts idemctl in a session of its own, so that no terminal of whoever
// runs the tests plays a part.
func (s *shop) start(args ...string) *child {
	s.t.Helper()
	c := &child{Cmd: exec.Command("idemctl", args...), err: new(bytes.Buffer)}
	c.Dir = s.dir
	c.Env = append(os.Environ(), "IDEM_DB="+filepath.Join(s.dir, "idem.db"))
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Stderr = c.err
	r, w, err := os.Pipe()
	require.NoError(s.t, err)
	c.Stdout, c.out = w, bufio.NewReader(r)
	require.NoError(s.t, c.Start())
	require.NoError(s.t, w.Close())
	s.t.Cleanup(func() {
		_ = c.Process.Kill() // it has ended unless the test has failed
		_ = r.Close()
	})
	return c
}

// line reads the next line of output, which tells that the command runs.
func (c *child) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(t, err, "idemctl says: %s", c.err)
	return strings.TrimSuffix(line, "\n")
}

// end waits and returns the exit code, -1 for a signal, and the rest of the output.
func (c *child) end(t *testing.T) (code int, out string) {
	t.Helper()
	rest, err := io.ReadAll(c.out)
	require.NoError(t, err)
	err = c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return c.ProcessState.ExitCode(), string(rest)
}

// run runs idemctl to its end.
func (s *shop) run(args ...string) (code int, out, errOut string) {
	s.t.Helper()
	c := s.start(args...)
	code, out = c.end(s.t)
	return code, out, c.err.String()
}

// lines returns the lines of a file, none if there is no file.
func (s *shop) lines(name string) []string {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(s.t, err)
	}
	return strings.Fields(string(data))
}

// all starts many idemctl processes and returns how often each exit code came.
func (s *shop) all(count int, args func(i int) []string) (codes map[int]int, outs []string) {
	children := make([]*child, count)
	for i := range children {
		children[i] = s.start(args(i)...)
	}
	codes = map[int]int{}
	outs = make([]string, count)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, c := range children {
		wg.Go(func() {
			code, out := c.end(s.t)
			mu.Lock()
			defer mu.Unlock()
			codes[code]++
			outs[i] = out
			if code != 0 && code != 75 {
				s.t.Logf("exit code %d: %s", code, c.err)
			}
		})
	}
	wg.Wait()
	return codes, outs
}

func TestRunOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	// The one that runs ends when all others have been turned away.
	const others = 19
	first := s.start("run", "--key", "k", "--", "sh", "-c", "echo ran >>log; echo begin; while [ ! -e go ]; do sleep 0.05; done")
	require.Equal(t, "begin", first.line(t))
	codes, _ := s.all(others, func(int) []string {
		return []string{"run", "--key", "k", "--", "sh", "-c", "echo ran >>log; echo begin; while [ ! -e go ]; do sleep 0.05; done"}
	})
	require.Equal(t, map[int]int{75: others}, codes)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
	code, _ := first.end(t)
	require.Zero(t, code)
	require.Equal(t, []string{"ran"}, s.lines("log"))
}

func TestRunRace(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	codes, outs := s.all(20, func(int) []string {
		return []string{"run", "--key", "k", "--wait", "30s", "--", "sh", "-c", "echo ran >>log; sleep 0.3; echo done"}
	})
	require.Equal(t, map[int]int{0: 20}, codes)
	for _, out := range outs {
		require.Equal(t, "done\n", out)
	}
	require.Equal(t, []string{"ran"}, s.lines("log"))
}

// The file is not held while commands run, and runs that come all at once do
// not take each other for somebody who holds it.
func TestRunManyKeysAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	limit := 20*time.Second + startup()
	began := time.Now()
	codes, _ := s.all(30, func(i int) []string {
		return []string{"run", "--key", fmt.Sprint(i), "--", "sh", "-c", "echo ran >>log; sleep 1"}
	})
	require.Equal(t, map[int]int{0: 30}, codes)
	require.Len(t, s.lines("log"), 30)
	require.Less(t, time.Since(began), limit, "one after the other they take 30")
}

func TestRunSignalReachesTheCommand(t *testing.T) {
	t.Parallel()
	// Under nohup a signal is ignored, and idemctl leaves it so. One that is
	// caught here is not ignored in the processes started from here.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	t.Cleanup(func() { signal.Stop(caught) })
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			c := s.start("run", "--key", "k", "--", "sh", "-c", "trap 'echo bye; exit 9' INT TERM HUP QUIT; echo begin; sleep 60 & wait")
			require.Equal(t, "begin", c.line(t))
			require.NoError(t, c.Process.Signal(sig))
			code, out := c.end(t)
			require.Equal(t, 9, code)
			require.Equal(t, "bye\n", out)
			require.Contains(t, c.err.String(), "after it got SIG")

			code, _, errOut := s.run("run", "--key", "k", "--", "true")
			require.Equal(t, 125, code, "another command: %s", errOut)
			code, _, _ = s.run("resolve", "run/k", "--retry", "--reason", "test")
			require.Zero(t, code)
		})
	}
}

// A signal that comes while nothing runs yet ends the waiting.
func TestRunSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	script := []string{"--", "sh", "-c", "echo begin; while [ ! -e go ]; do sleep 0.05; done"}
	first := s.start(append([]string{"run", "--key", "k"}, script...)...)
	require.Equal(t, "begin", first.line(t))
	made := filepath.Join(s.dir, "made")
	require.NoError(t, os.WriteFile(made, nil, 0o600))
	waiter := s.start(append([]string{"run", "--key", "k", "--wait", "1m", "--result-file", "made"}, script...)...)
	// The old result is removed after it has begun to catch signals.
	require.Eventually(t, func() bool {
		_, err := os.Stat(made)
		return errors.Is(err, os.ErrNotExist)
	}, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, waiter.Process.Signal(syscall.SIGTERM))
	code, _ := waiter.end(t)
	require.Equal(t, 143, code, "%s", waiter.err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
	code, _ = first.end(t)
	require.Zero(t, code)
}

func TestRunHeldFile(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	holder := exec.Command("lockholder", filepath.Join(s.dir, "idem.db"))
	stdin, err := holder.StdinPipe()
	require.NoError(t, err)
	stdout, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)

	limit := 1500*time.Millisecond + startup()
	began := time.Now()
	code, _, errOut := s.run("run", "--key", "k", "--", "true")
	require.Equal(t, 6, code)
	require.Less(t, time.Since(began), limit)
	require.Contains(t, errOut, "is locked")
	require.NoError(t, stdin.Close())
	require.NoError(t, holder.Wait())
}
