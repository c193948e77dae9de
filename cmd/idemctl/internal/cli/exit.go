package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// Exit codes of every command. Scripts branch on them: a number never changes
// its meaning.
const (
	exitOK         = 0
	exitFailure    = 1
	exitUsage      = 2
	exitNotFound   = 3
	exitProblems   = 4
	exitPartial    = 5
	exitLocked     = 6
	exitInterrupt  = 130 // 128 + SIGINT
	exitTerminated = 143 // 128 + SIGTERM
)

// Exit codes of run, beside those of the command that it runs.
const (
	exitRunInProgress    = 75 // EX_TEMPFAIL
	exitRunInterrupted   = 76
	exitRunTimeout       = 124 // as timeout(1)
	exitRunFailure       = 125 // as env(1) and timeout(1)
	exitRunNotExecutable = 126
	exitRunNotFound      = 127
)

// exitCode is one line of the table of exit codes.
type exitCode struct {
	Code    int
	Meaning string
}

// exitCodes is what the help topic and docs/exit-codes.md say.
func exitCodes() []exitCode {
	return []exitCode{
		{exitOK, "done; also when nothing matched, and when there are only warnings"},
		{exitFailure, "operational failure: the file, the disk or the system would not do it; also a key that cannot be settled and a token that is refused"},
		{exitUsage, "usage: a bad flag, argument or environment variable, or a missing --yes"},
		{exitNotFound, "no record for the key, no such token, no such parked event"},
		{exitProblems, "check: the file has problems"},
		{exitPartial, "partial: some records or events were missing, changed meanwhile or in use and were left alone, the rest is done"},
		{exitLocked, "the file is held by another process and did not come free in time"},
		{exitInterrupt, "interrupted by SIGINT (Ctrl-C)"},
		{exitTerminated, "ended by SIGTERM"},
	}
}

// runExitCodes is the table for run, whose other codes are those of the command
// that it runs or replays.
func runExitCodes() []exitCode {
	return []exitCode{
		{exitRunInProgress, "the key is in progress elsewhere: try again later"},
		{exitRunInterrupted, "an earlier run was interrupted and its outcome is unknown: see idemctl resolve"},
		{exitRunTimeout, "the command hit --timeout"},
		{exitRunFailure, "idemctl itself failed: the store, or a key that was used with another command"},
		{exitRunNotExecutable, "the command was found but cannot be executed"},
		{exitRunNotFound, "the command was not found"},
	}
}

// exitError is an error that decides the exit code.
type exitError struct {
	code int
	err  error  // what to print; nil prints nothing
	try  string // a command or setting that helps, printed after it; may be ""
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// fail is an exitError with a message "what: why" and a hint, which may be "".
func fail(code int, try, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...), try: try}
}

// usage is fail for a wrong call.
func usage(format string, args ...any) error { return fail(exitUsage, "", format, args...) }

// silent ends with a code after everything has been said.
func silent(code int) error { return &exitError{code: code} }

// signalError is the cause of a context that a signal has ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "stopped by " + e.signal.String() }

func (e *signalError) code() int {
	if e.signal == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupt
}

// interrupted returns the signal that has ended ctx, or nil.
func interrupted(ctx context.Context) *signalError {
	var stopped *signalError
	if errors.As(context.Cause(ctx), &stopped) {
		return stopped
	}
	return nil
}

// classify gives every error its exit code and its hint. Order matters: the
// most telling comes first.
func (a *app) classify(ctx context.Context, err error) *exitError {
	var own *exitError
	var locked *idem.LockedError
	stopped := interrupted(ctx)
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, syscall.EPIPE):
		return &exitError{code: exitOK} // the reader has seen enough
	case stopped != nil && (errors.Is(err, context.Canceled) || errors.Is(err, stopped)):
		return &exitError{code: stopped.code(), err: stopped}
	case !a.started:
		return &exitError{code: exitUsage, err: err, try: a.command + " --help"}
	case errors.As(err, &locked):
		return &exitError{code: exitLocked, err: err, try: lockedHint(locked)}
	case errors.Is(err, idem.ErrInvalidKey):
		return &exitError{code: exitUsage, err: err, try: "idemctl help keys"}
	case errors.Is(err, idem.ErrNotFound):
		return &exitError{code: exitNotFound, err: err}
	case errors.Is(err, idem.ErrCorrupt):
		return &exitError{code: exitFailure, err: err, try: a.hint("check")}
	}
	return &exitError{code: exitFailure, err: err}
}

func lockedHint(e *idem.LockedError) string {
	if e.PID == 0 {
		return "stop the process that holds it, or wait longer with --lock-timeout 30s"
	}
	return fmt.Sprintf("stop process %d, or wait longer with --lock-timeout 30s", e.PID)
}

// report prints an error in its one form and returns the exit code.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	e := a.classify(ctx, err)
	if e.err == nil {
		return e.code
	}
	fmt.Fprintf(a.err, "idemctl: %s\n", printable(e.err.Error()))
	if e.try != "" {
		fmt.Fprintf(a.err, "Try: %s\n", printable(e.try))
	}
	return e.code
}

// printable escapes what must not reach a terminal. Backslashes stay single,
// unlike with render.Escape alone, because keys in messages are quoted already.
func printable(text string) string {
	parts := strings.Split(text, `\`)
	for i, part := range parts {
		parts[i] = render.Escape(part)
	}
	return strings.Join(parts, `\`)
}
