package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The next run sees at once that the one before was killed.
func TestRunKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	call := []string{"run", "--key", "k 1", "--", "sh", "-c", "echo ran >>log; echo once; sleep 30"}
	first := s.start(call...)
	require.Equal(t, "once", first.line(t))
	require.NoError(t, syscall.Kill(-first.Process.Pid, syscall.SIGKILL))
	_ = first.Wait() // it was killed

	limit := 1500*time.Millisecond + startup()
	began := time.Now()
	code, out, errOut := s.run(call...)
	require.Less(t, time.Since(began), limit)
	require.Equal(t, 76, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "attempt 1 of run/k 1 was interrupted, its outcome is unknown: its process is gone")
	for _, want := range []string{
		"idemctl resolve 'run/k 1' --completed", "idemctl resolve 'run/k 1' --failed", "idemctl resolve 'run/k 1' --retry", "--on-interrupted rerun",
	} {
		require.Contains(t, errOut, want)
	}

	again := s.start("run", "--key", "k 1", "--on-interrupted", "rerun", "--timeout", "2s", "--", "sh", "-c", "echo ran >>log; echo once; sleep 30")
	require.Equal(t, "once", again.line(t))
	code, _ = again.end(t)
	require.Equal(t, 124, code)
	require.Equal(t, []string{"ran", "ran"}, s.lines("log"))

	code, _, _ = s.run("resolve", "run/k 1", "--completed", "--reason", "seen")
	require.Zero(t, code)
	code, _, errOut = s.run(call...)
	require.Zero(t, code)
	require.Contains(t, errOut, "replayed run/k 1 (resolved: seen")
}

// Nothing of a command goes on when idemctl alone is killed, its children
// included.
func TestRunKilledAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	c := s.start("run", "--key", "k", "--", "sh", "-c", "sleep 60 & echo $! $$; wait; echo survived >>log")
	var pids [2]int
	for i, text := range strings.Fields(c.line(t)) {
		pid, err := strconv.Atoi(text)
		require.NoError(t, err)
		pids[i] = pid
	}
	require.NoError(t, c.Process.Kill())
	_ = c.Wait() // it was killed
	for _, pid := range pids {
		require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 10*time.Millisecond, "process %d", pid)
	}
	require.Empty(t, s.lines("log"))
}

// gone reports whether a process has ended, if only nobody has collected it.
func gone(pid int) bool {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	fields := strings.Fields(string(status))
	return len(fields) > 2 && fields[2] == "Z"
}
