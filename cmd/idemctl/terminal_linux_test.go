package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/idembolt/idem"
)

// openTerminal returns both ends of a new terminal: the person's and the program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(filepath.Join("/dev/pts", strconv.Itoa(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return person, program
}

// readUntil reads what is shown until it holds the text, or until the program has
// closed the terminal if text is "".
func readUntil(t *testing.T, person *os.File, text string) string {
	t.Helper()
	var shown strings.Builder
	buf := make([]byte, 1024)
	for text == "" || !strings.Contains(shown.String(), text) {
		n, err := person.Read(buf)
		shown.Write(buf[:n])
		if text == "" && errors.Is(err, syscall.EIO) {
			break
		}
		require.NoError(t, err, "shown: %s", shown.String())
	}
	return shown.String()
}

// onTerminal starts idemctl in a directory with a terminal for everything.
func onTerminal(t *testing.T, dir string, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	person, program := openTerminal(t)
	cmd := exec.Command("idemctl", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "IDEM_DB=idem.db")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test has failed
	require.NoError(t, program.Close())
	return cmd, person
}

// Ctrl-C at a question ends the command at once, and nothing is deleted.
func TestCtrlCAtTheQuestion(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	code, _, errOut := s.run("run", "--key", "k", "--", "true")
	require.Zero(t, code, errOut)

	cmd, person := onTerminal(t, s.dir, "purge", "run/k")
	readUntil(t, person, "Delete? [y/N]")
	_, err := person.WriteString("\x03")
	require.NoError(t, err)
	require.Contains(t, readUntil(t, person, ""), "idemctl: stopped by interrupt: nothing was deleted")
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 130, exit.ExitCode())

	code, _, errOut = s.run("get", "run/k")
	require.Zero(t, code, errOut)
}

// Dropping events asks as purging does, and only a yes drops them.
func TestDropAsks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	store, err := idem.OpenBoltStore(t.Context(), filepath.Join(s.dir, "idem.db"), idem.BoltConfig{})
	require.NoError(t, err)
	require.NoError(t, writeEvent(t.Context(), store, []string{"e-1", "payload"}))
	require.NoError(t, park(t.Context(), store, []string{"no broker"}))
	require.NoError(t, store.Close())

	for _, tt := range []struct {
		answer, says string
		code         int
	}{{"\r", "nothing was dropped", 1}, {"\x03", "stopped by interrupt: nothing was dropped", 130}, {"y\r", "Dropped 1 event.", 0}} {
		cmd, person := onTerminal(t, s.dir, "outbox", "drop", "e-1")
		require.Contains(t, readUntil(t, person, "Drop? [y/N]"), "1 parked event in outbox would be dropped.")
		_, err := person.WriteString(tt.answer)
		require.NoError(t, err)
		require.Contains(t, readUntil(t, person, ""), tt.says)
		_ = cmd.Wait() // the code tells
		require.Equal(t, tt.code, cmd.ProcessState.ExitCode())
	}
}
