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

// Ctrl-C at a question ends the command at once, and nothing is deleted.
func TestCtrlCAtTheQuestion(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	code, _, errOut := s.run("run", "--key", "k", "--", "true")
	require.Zero(t, code, errOut)

	person, program := openTerminal(t)
	cmd := exec.Command("idemctl", "purge", "run/k")
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "IDEM_DB=idem.db")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test has failed
	require.NoError(t, program.Close())
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
