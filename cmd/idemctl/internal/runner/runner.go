// Package runner runs one command under supervision and remembers what it
// printed, so that it can be shown again later:
//
//	signals := runner.Catch(ctx)
//	defer signals.Stop()
//	res, err := runner.Run(signals.Context(), runner.Command{
//		Args: []string{"make", "release"}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Keep: 1 << 20,
//	}, signals)
//	…
//	err = runner.Replay(res, os.Stdout, os.Stderr)
//
// # Output
//
// What the command prints goes on at once and is recorded beside it, up to
// Command.Keep bytes: the beginning is kept, the rest only counted. The command
// writes into pipes, so it does not see a terminal, and the order between its
// two streams is the order in which they were read, which is exact only for
// writes that are not close together. When the reader of our own output goes
// away, the command goes on and its output is still recorded.
//
// A process that the command leaves behind may keep the pipes open. Everything
// the command itself has printed is read; after that silence of a second, five
// seconds of waiting or a mebibyte of output end the run, and Result.LeftBehind
// says so. What the process writes after that has no reader.
//
// # Process group and signals
//
// The command leads a process group of its own, and SIGINT, SIGTERM, SIGHUP and
// SIGQUIT sent to us are handed on to that whole group; we end when the command
// has ended. A signal that was ignored when we were started (nohup) stays
// ignored.
//
// With a terminal that would be wrong: a group in the background is stopped when
// it reads from it. So with Command.Terminal the command stays in our group.
// What is typed (Ctrl-C, Ctrl-\, Ctrl-Z) then reaches it straight from the
// terminal and is not sent a second time, and only the command itself, not its
// children, gets SIGTERM and SIGHUP from us.
//
// # When we are killed
//
// The command does not go on unsupervised when we die of SIGKILL. On Linux the
// kernel kills it in that moment, unless it gained privileges when it started.
// On every Unix a small shell process waits for our death beside it and kills
// its process group; there is none where there is no /bin/sh or where the
// command shares our group.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Exit codes that say why a command has none of its own, as the shell and
// coreutils use them.
const (
	ExitTimedOut      = 124
	ExitNotExecutable = 126
	ExitNotFound      = 127
	exitSignalled     = 128 // plus the number of the signal
)

// DefaultGrace is the time between SIGTERM and SIGKILL.
const DefaultGrace = 5 * time.Second

// Command says what to run. Args is required.
type Command struct {
	// Args are the name of the program, looked up in PATH, and its arguments.
	Args []string
	// Env is the environment; nil means ours.
	Env []string
	// Stdin is read by the command; nil is empty. A file is handed over as it is.
	Stdin io.Reader
	// Stdout and Stderr get the output as it comes. Required.
	Stdout, Stderr io.Writer
	// Keep bounds the recorded bytes of both streams together. 0 keeps none.
	Keep int64
	// Timeout ends the command; 0 means no limit.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL; 0 means DefaultGrace.
	Grace time.Duration
	// Terminal says that a person's terminal is attached: the command stays in
	// our process group. See Terminal, the function.
	Terminal bool
}

// StartError says that the command did not start: nothing ran.
type StartError struct {
	Name string
	Code int // ExitNotFound or ExitNotExecutable
	Err  error
}

func (e *StartError) Error() string { return fmt.Sprintf("cannot run %q: %v", e.Name, e.Err) }

// Unwrap returns the error of the system.
func (e *StartError) Unwrap() error { return e.Err }

// CutShortError says that the command did not come to its own end: it was
// killed by a signal, ran out of time, or failed after it was told to stop.
// Nobody knows how far it got.
type CutShortError struct {
	Why string
	// TimedOut is whether Command.Timeout was over.
	TimedOut bool
	// Cause is why ctx had ended, if that stopped the command.
	Cause error
}

func (e *CutShortError) Error() string { return "the command " + e.Why }

// Unwrap returns Cause.
func (e *CutShortError) Unwrap() error { return e.Cause }

// Run runs the command and waits for its end. The error is nil if the command
// ended by itself, whatever its exit code. Otherwise it is *StartError if
// nothing ran, *CaughtError if a signal had come before anything ran, or
// *CutShortError. When ctx ends the command is stopped as at a timeout.
//
// Result.ExitCode is what a shell would report, ExitTimedOut after a timeout.
func Run(ctx context.Context, c Command, s *Signals) (Result, error) {
	// The kernel kills the command when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	rec := &recorder{room: c.Keep}
	out, err := newStream(Stdout, c.Stdout, rec)
	if err != nil {
		return Result{}, err
	}
	defer out.close()
	errs, err := newStream(Stderr, c.Stderr, rec)
	if err != nil {
		return Result{}, err
	}
	defer errs.close()

	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Env, c.Stdin, out.writeEnd, errs.writeEnd
	cmd.WaitDelay = drainSilence // for an input that is not a file
	p := &process{cmd: cmd, shared: c.Terminal}
	p.prepare()

	if err := s.attach(p.handOn); err != nil {
		return Result{}, err
	}
	defer s.detach()
	began := time.Now()
	if err := p.start(); err != nil {
		return Result{}, startError(c.Args[0], err)
	}
	out.start()
	errs.start()
	relieve := p.guard()
	defer relieve()
	stopWatch := p.watch(ctx, c.Timeout, c.Grace)
	waitErr := p.wait()
	stopWatch()
	took := time.Since(began)
	held := drain(out, errs)

	res := Result{ExitCode: p.exitCode(), StartedAt: began.UTC().Round(0), Duration: took, LeftBehind: held}
	rec.fill(&res)
	if cut := p.cutShort(c.Timeout, context.Cause(ctx)); cut != nil {
		if cut.TimedOut {
			res.ExitCode = ExitTimedOut
		}
		return res, cut
	}
	if cmd.ProcessState == nil {
		return res, &CutShortError{Why: fmt.Sprintf("was lost: %v", waitErr), Cause: waitErr}
	}
	return res, nil
}

// startError tells, as a shell does, a program that is not there from one that
// cannot be executed.
func startError(name string, err error) error {
	code := ExitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = ExitNotFound
	}
	var inner *exec.Error
	var path *os.PathError
	switch {
	case errors.As(err, &inner):
		err = inner.Err
	case errors.As(err, &path):
		err = path.Err
	}
	if code == ExitNotFound && errors.Is(err, syscall.ENOENT) {
		if _, statErr := os.Stat(name); statErr == nil { // a script whose interpreter is missing
			err = fmt.Errorf("its interpreter is missing: %w", err)
		}
	}
	return &StartError{Name: name, Code: code, Err: err}
}
