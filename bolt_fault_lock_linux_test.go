package idem

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// holder is a child that holds the file until its standard input ends.
type holder struct {
	cmd   *exec.Cmd
	input io.Closer
}

func startHolder(t *testing.T, path string, readOnly bool) *holder {
	t.Helper()
	cmd := faultChild(t, "IDEM_FAULT_PATH="+path, fmt.Sprintf("IDEM_FAULT_READONLY=%t", readOnly))
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	h := &holder{cmd, input}
	t.Cleanup(h.kill)
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "open\n", line)
	return h
}

// hold is the child's part of startHolder.
func hold(t *testing.T) {
	s := openFault(t, os.Getenv("IDEM_FAULT_PATH"), BoltConfig{ReadOnly: os.Getenv("IDEM_FAULT_READONLY") == "true"})
	fmt.Println("open")
	_, err := io.Copy(io.Discard, os.Stdin)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func (h *holder) letGo(t *testing.T) {
	t.Helper()
	require.NoError(t, h.input.Close())
	require.NoError(t, h.cmd.Wait())
}

func (h *holder) kill() {
	if h.cmd.ProcessState == nil {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	}
}

// TestLocked opens a file that another process holds. It must be ErrLocked and
// name the holder, after the timeout and not much later; waiting must end with
// the context; and when the holder ends, by itself or killed, opening works.
func TestLocked(t *testing.T) {
	if isFaultChild(t) {
		hold(t)
		return
	}
	t.Parallel()
	path := faultFile(t, 1, 10)
	h := startHolder(t, path, false)
	pid := h.cmd.Process.Pid
	for _, readOnly := range []bool{false, true} {
		for _, timeout := range []time.Duration{-1, time.Millisecond, time.Second} {
			began := time.Now()
			_, err := OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: timeout, ReadOnly: readOnly})
			took := time.Since(began)
			requireLocked(t, err, path, pid)
			require.GreaterOrEqual(t, took, timeout)
			require.Less(t, took, max(timeout, 0)+time.Second)
		}
	}
	transient, err := OpenTransient(t.Context(), path, BoltConfig{LockTimeout: -1})
	requireLocked(t, err, path, pid)
	require.Nil(t, transient)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	_, err = OpenBoltStore(ctx, path, BoltConfig{LockTimeout: time.Minute})
	require.Less(t, time.Since(began), 5*time.Second)
	requireLocked(t, err, path, pid)
	require.ErrorIs(t, err, context.Canceled)

	opened := make(chan error)
	go func() {
		s, err := OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: time.Minute})
		opened <- err
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	h.letGo(t)
	require.NoError(t, <-opened, "waiting must succeed when the holder ends")
	require.NoError(t, <-opened)

	h = startHolder(t, path, false)
	h.kill()
	requireSound(t, path)
}

func requireLocked(t *testing.T, err error, path string, pid int) {
	t.Helper()
	require.ErrorIs(t, err, ErrLocked)
	var locked *LockedError
	require.True(t, errors.As(err, &locked))
	require.Equal(t, path, locked.Path)
	require.Equal(t, pid, locked.PID)
	require.NotEmpty(t, locked.Command)
	require.ErrorContains(t, err, fmt.Sprintf("%s is locked by pid %d", path, pid))
}

// TestLockedBySelf opens a file twice in one process: the second is ErrLocked,
// and the first is none the worse for it.
func TestLockedBySelf(t *testing.T) {
	t.Parallel()
	path := faultFile(t, 1, 10)
	s := openFault(t, path, BoltConfig{})
	for range 3 {
		_, err := OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: -1})
		requireLocked(t, err, path, os.Getpid())
	}
	_, err := s.Create(t.Context(), completed("new", "v"))
	require.NoError(t, err)
	_, err = OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: -1, ReadOnly: true})
	requireLocked(t, err, path, os.Getpid())
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// TestReadersAndService lets read-only holders stand in the way of a starting
// service: several may read at once, the service waits for them as long as it
// says, and readers that come and go must not keep it from starting.
func TestReadersAndService(t *testing.T) {
	if isFaultChild(t) {
		hold(t)
		return
	}
	t.Parallel()
	path := faultFile(t, 1, 10)
	reader := startHolder(t, path, true)
	second := openFault(t, path, BoltConfig{ReadOnly: true, LockTimeout: -1})
	_, err := second.Get(t.Context(), faultKey("k0"))
	require.NoError(t, err)
	require.NoError(t, second.Close())
	_, err = OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: 100 * time.Millisecond})
	requireLocked(t, err, path, reader.cmd.Process.Pid)
	reader.letGo(t)

	stop, stopped := make(chan struct{}), make(chan int)
	for range 2 { // tools that look every few milliseconds
		go func() {
			reads := 0
			for {
				select {
				case <-stop:
					stopped <- reads
					return
				case <-time.After(5 * time.Millisecond):
				}
				s, err := OpenBoltStore(t.Context(), path, BoltConfig{ReadOnly: true, LockTimeout: -1})
				if err == nil {
					reads++
					err = s.Close()
				}
				if err != nil && !errors.Is(err, ErrLocked) {
					t.Errorf("reader: %v", err)
				}
			}
		}()
	}
	for range 5 {
		require.NoError(t, openFault(t, path, BoltConfig{}).Close(), "readers that come and go kept the service out")
	}
	close(stop)
	<-stopped
	<-stopped
	requireSound(t, path)
}

// TestForkedChild starts a process while the file is open: it must not inherit
// the lock and keep the file locked after Close.
func TestForkedChild(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	s := openFault(t, path, BoltConfig{})
	sleeper := exec.Command("sleep", "60")
	require.NoError(t, sleeper.Start())
	defer func() {
		require.NoError(t, sleeper.Process.Kill())
		require.Error(t, sleeper.Wait())
	}()
	require.NoError(t, s.Close())
	require.NoError(t, openFault(t, path, BoltConfig{LockTimeout: -1}).Close())
}
