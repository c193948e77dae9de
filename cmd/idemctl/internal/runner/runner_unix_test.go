//go:build unix

package runner

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// run runs a script, with a recorder of what it prints.
func run(t *testing.T, c Command) (res Result, out, errOut string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	res, err = Run(t.Context(), c, Catch(t.Context()))
	return res, o.String(), e.String(), err
}

func sh(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "sh"}, args...)
}

// shellBegins is a time in which a shell has certainly begun, measured here and
// now: the machine may be busy.
func shellBegins(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	require.NoError(t, exec.Command("/bin/sh", "-c", "sleep 0").Run())
	return time.Second + 10*time.Since(began)
}

func TestRunOutputAndCode(t *testing.T) {
	t.Parallel()
	res, out, errOut, err := run(t, Command{
		Args: sh("cat; echo out; echo $VARIABLE >&2; exit 7"), Stdin: strings.NewReader("in\n"),
		Env: []string{"VARIABLE=value"}, Keep: 100,
	})
	require.NoError(t, err)
	require.Equal(t, 7, res.ExitCode)
	require.Equal(t, "in\nout\n", out)
	require.Equal(t, "value\n", errOut)
	require.NoError(t, res.Unwritten)
	require.Positive(t, res.Duration)
	require.WithinDuration(t, time.Now(), res.StartedAt, time.Minute)

	var again, againErr bytes.Buffer
	require.NoError(t, Replay(res, &again, &againErr))
	require.Equal(t, out, again.String())
	require.Equal(t, errOut, againErr.String())
}

func TestRunKeepsTheBeginning(t *testing.T) {
	t.Parallel()
	res, out, _, err := run(t, Command{Args: sh("head -c 300000 /dev/zero; echo end"), Keep: 1000})
	require.NoError(t, err)
	require.Len(t, out, 300004)
	require.Len(t, res.Chunks, 1)
	require.Len(t, res.Chunks[0].Data, 1000)
	require.Equal(t, int64(299004), res.NotKept)
}

func TestRunNotStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600))
	orphan := filepath.Join(dir, "orphan")
	require.NoError(t, os.WriteFile(orphan, []byte("#!/nowhere/sh\n"), 0o700))
	tests := []struct {
		name, program string
		code          int
		text          string
	}{
		{"no such file", filepath.Join(dir, "none"), ExitNotFound, "no such file"},
		{"not in PATH", "no-such-program-anywhere", ExitNotFound, "not found"},
		{"not executable", plain, ExitNotExecutable, "permission denied"},
		{"a directory", dir, ExitNotExecutable, ""},
		{"no interpreter", orphan, ExitNotFound, "interpreter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, _, err := run(t, Command{Args: []string{tt.program}})
			var start *StartError
			require.ErrorAs(t, err, &start)
			require.Equal(t, tt.code, start.Code)
			require.Contains(t, err.Error(), tt.text)
		})
	}
}

func TestRunKilled(t *testing.T) {
	t.Parallel()
	res, _, _, err := run(t, Command{Args: sh("kill -KILL $$")})
	var cut *CutShortError
	require.ErrorAs(t, err, &cut)
	require.False(t, cut.TimedOut)
	require.Contains(t, err.Error(), "SIGKILL")
	require.Equal(t, 128+9, res.ExitCode)
}

func TestRunTimeout(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script, out string
	}{
		{"it obeys", "echo begin; sleep 60", "begin\n"},
		{"it cleans up and claims success", "trap 'echo cleaned; exit 0' TERM; echo begin; sleep 60 & wait", "begin\ncleaned\n"},
		{"it ignores SIGTERM", "trap '' TERM; echo begin; sleep 60", "begin\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			res, out, _, err := run(t, Command{Args: sh(tt.script), Timeout: shellBegins(t), Grace: 500 * time.Millisecond})
			var cut *CutShortError
			require.ErrorAs(t, err, &cut)
			require.True(t, cut.TimedOut)
			require.Equal(t, ExitTimedOut, res.ExitCode)
			require.Equal(t, tt.out, out)
			require.Less(t, time.Since(began), 30*time.Second)
		})
	}
}

// What is left of the group of a command that timed out is killed with it.
func TestRunTimeoutKillsTheGroup(t *testing.T) {
	t.Parallel()
	_, out, _, err := run(t, Command{
		Args: sh("(trap '' TERM; echo $$; exec sleep 60) & wait"), Timeout: shellBegins(t), Grace: 10 * time.Second,
	})
	var cut *CutShortError
	require.ErrorAs(t, err, &cut)
	leader, err := strconv.Atoi(strings.TrimSpace(out))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(-leader, 0), syscall.ESRCH) },
		10*time.Second, 10*time.Millisecond)
}

func TestRunStoppedByContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("the key is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	begun := &trigger{on: "begin", do: func() { cancel(cause) }}
	res, err := Run(ctx, Command{Args: sh("echo begin; exec sleep 60"), Stdout: begun, Stderr: io.Discard}, Catch(t.Context()))
	require.ErrorIs(t, err, cause)
	var cut *CutShortError
	require.ErrorAs(t, err, &cut)
	require.Equal(t, 128+15, res.ExitCode)
}

// A process that is left behind with our pipes ends neither early nor never.
func TestRunLeftover(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script string
		want         []string
		left         bool
	}{
		{"silent", "sleep 60 & echo pid $!; echo done", []string{"done"}, true},
		{"soon finished", "(sleep 0.2; echo later) & echo pid $!; echo done", []string{"done", "later"}, false},
		{"talking without end", "(while :; do echo x; done) & echo pid $!; echo done", []string{"done", "x"}, true},
		{"silent with its output elsewhere", "sleep 60 >/dev/null 2>&1 & echo pid $!; echo done", []string{"done"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			res, out, _, err := run(t, Command{Args: sh(tt.script), Keep: 1 << 10})
			require.NoError(t, err)
			require.Equal(t, tt.left, res.LeftBehind)
			require.Zero(t, res.ExitCode)
			require.Less(t, time.Since(began), 30*time.Second)
			for _, want := range tt.want {
				require.Contains(t, out, want+"\n")
			}
			_, rest, _ := strings.Cut(out, "pid ")
			pid, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		})
	}
}

// A slow reader of ours gets everything, however long after the end.
func TestRunSlowReader(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	results := make(chan error, 1)
	go func() {
		_, err := Run(t.Context(), Command{Args: sh("head -c 40000 /dev/zero; echo end >&2"), Stdout: w, Stderr: io.Discard}, Catch(t.Context()))
		_ = w.Close()
		results <- err
	}()
	first := make([]byte, 1)
	_, err := io.ReadFull(r, first)
	require.NoError(t, err)
	select {
	case <-results:
		t.Fatal("the run ended before its output was read")
	case <-time.After(drainSilence + 500*time.Millisecond): // what must not end the reading
	}
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Len(t, rest, 39999)
	require.NoError(t, <-results)
}

// A reader of ours that has gone does not hurt the command.
func TestRunReaderGone(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	res, err := Run(t.Context(), Command{
		Args: sh("head -c 200000 /dev/zero; echo end >&2"), Stdout: failingWriter{gone}, Stderr: io.Discard, Keep: 1 << 20,
	}, Catch(t.Context()))
	require.NoError(t, err)
	require.Zero(t, res.ExitCode)
	require.ErrorIs(t, res.Unwritten, gone)
	kept := 0
	for _, c := range res.Chunks {
		kept += len(c.Data)
	}
	require.Equal(t, 200004, kept)
}

func TestSignalsReachTheGroup(t *testing.T) {
	t.Parallel()
	// A shell cannot trap what it was started with as ignored, as under nohup.
	// A signal that is caught here is not ignored in the processes started from
	// here.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	t.Cleanup(func() { signal.Stop(caught) })
	tests := []struct {
		name, script string
		shared       bool
		signal       syscall.Signal
		code         int
		cut          bool
		out          string
	}{
		{"killed", "echo begin; exec sleep 60", false, syscall.SIGTERM, 128 + 15, true, ""},
		{"its children get it", "trap 'wait; exit 3' TERM; (trap 'echo child; exit' TERM; echo begin; sleep 60 & wait) & wait", false, syscall.SIGTERM, 3, true, "child\n"},
		{"it finishes its work", "trap 'echo bye; exit 0' HUP; echo begin; sleep 60 & wait", false, syscall.SIGHUP, 0, false, "bye\n"},
		{"with a terminal only itself", "trap 'kill $!; exit 4' TERM; sleep 60 & echo begin; wait", true, syscall.SIGTERM, 4, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			signals := Catch(t.Context())
			out := &trigger{on: "begin", do: func() { signals.caught <- tt.signal }}
			res, err := Run(t.Context(), Command{
				Args: sh(tt.script), Stdout: out, Stderr: io.Discard, Terminal: tt.shared,
			}, signals)
			var cut *CutShortError
			require.Equal(t, tt.cut, errors.As(err, &cut), "error: %v", err)
			require.Equal(t, tt.code, res.ExitCode)
			require.Equal(t, "begin\n"+tt.out, out.String())
			require.Nil(t, signals.Caught())
		})
	}
}

// What a terminal has sent to the whole group is not sent again.
func TestTypedSignalsAreNotDoubled(t *testing.T) {
	t.Parallel()
	signals := Catch(t.Context())
	out := &trigger{on: "begin", do: func() {
		signals.caught <- syscall.SIGINT
		signals.caught <- syscall.SIGTERM
	}}
	_, err := Run(t.Context(), Command{
		Args:   sh("trap 'echo int' INT; trap 'echo term; kill $!; exit 1' TERM; sleep 60 & echo begin; wait; wait"),
		Stdout: out, Stderr: io.Discard, Terminal: true,
	}, signals)
	var cut *CutShortError
	require.ErrorAs(t, err, &cut)
	require.Contains(t, err.Error(), "SIGINT", "it did come, though")
	require.Equal(t, "begin\nterm\n", out.String())
}

func TestSignalBeforeTheCommand(t *testing.T) {
	t.Parallel()
	signals := Catch(t.Context())
	signals.caught <- syscall.SIGTERM
	<-signals.Context().Done()
	var caught *CaughtError
	require.ErrorAs(t, context.Cause(signals.Context()), &caught)
	require.Equal(t, 128+15, caught.ExitCode())

	marker := filepath.Join(t.TempDir(), "marker")
	_, err := Run(t.Context(), Command{Args: sh("touch " + marker), Stdout: io.Discard, Stderr: io.Discard}, signals)
	require.ErrorAs(t, err, &caught)
	require.NoFileExists(t, marker)
}

// trigger calls do once it has seen a line.
type trigger struct {
	on string
	do func()

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.text.Write(p)
	seen := false
	for lines := bufio.NewScanner(bytes.NewReader(w.text.Bytes())); lines.Scan(); {
		seen = seen || lines.Text() == w.on
	}
	w.mu.Unlock()
	if seen {
		w.once.Do(w.do)
	}
	return len(p), nil
}

func (w *trigger) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
