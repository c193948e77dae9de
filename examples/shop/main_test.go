package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commandEnv makes the test binary the command.
const commandEnv = "SHOP_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// running is a shop in a process of its own.
type running struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

// launch runs the shop on the files in dir until the test ends.
func launch(t *testing.T, dir string, flags ...string) *running {
	t.Helper()
	args := append([]string{"serve", "--listen", "127.0.0.1:0",
		"--db", filepath.Join(dir, "shop.db"), "--provider", filepath.Join(dir, "provider.jsonl")}, flags...)
	s := &running{cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	s.cmd.Env = append(os.Environ(), commandEnv+"=yes")
	s.cmd.Stderr = t.Output()
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { // both fail if the test has ended it
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	s.out = bufio.NewScanner(out)
	return s
}

// listening waits until the shop listens and returns its address.
func (s *running) listening(t *testing.T) string {
	t.Helper()
	require.True(t, s.out.Scan(), "the shop ended before it listened")
	_, url, found := strings.Cut(s.out.Text(), "listening on ")
	require.True(t, found, s.out.Text())
	return url
}

func (s *running) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, s.cmd.Process.Kill())
	require.Error(t, s.cmd.Wait())
}
