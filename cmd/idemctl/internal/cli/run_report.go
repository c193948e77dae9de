package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/cmd/idemctl/internal/runner"
	"github.com/idembolt/idem/internal/procid"
)

// What a call of run came to, as --result-file names it.
const (
	outcomeExecuted    = "executed"
	outcomeReplayed    = "replayed"
	outcomeInProgress  = "in_progress"
	outcomeInterrupted = "interrupted"
	outcomeMismatch    = "mismatch"
	outcomeTimeout     = "timeout"
	outcomeLocked      = "locked"
	outcomeError       = "error"
)

// runOutcome is what is written to --result-file.
type runOutcome struct {
	Outcome  string `json:"outcome"`
	ExitCode int    `json:"exit_code"`
	Key      string `json:"key"`
	Attempt  int    `json:"attempt,omitempty"`
	// CommandExitCode is the command's own code where ExitCode says something
	// else although it ran.
	CommandExitCode *int `json:"command_exit_code,omitempty"`
	// Error is what was printed about it.
	Error string `json:"error,omitempty"`
}

// report says what there is to say about the end of the call.
func (r *onceRun) report(res idem.Result[runner.Result], err error) runOutcome {
	o := r.judge(res, err)
	o.Attempt = res.Record.Attempt
	return o
}

// judge finds the outcome of a call and prints what goes with it. Order matters:
// an outcome that could not be recorded carries the function's error, too.
func (r *onceRun) judge(res idem.Result[runner.Result], err error) runOutcome {
	var (
		notRecorded *idem.NotRecordedError
		cut         *runner.CutShortError
		failed      *commandError
		start       *runner.StartError
		replayed    *idem.FailedError
		interrupted *idem.InterruptedError
		own         *exitError
	)
	switch {
	case err == nil && res.Replayed:
		return r.replay(res.Value, &res.Record)
	case err == nil:
		r.notesAfter(res.Value)
		return runOutcome{Outcome: outcomeExecuted, ExitCode: res.Value.ExitCode}
	case errors.As(err, &notRecorded):
		return r.lostRecord(res.Value, err)
	case errors.As(err, &cut):
		return r.cutShort(res.Value, &res.Record, cut)
	case errors.As(err, &failed):
		r.notesAfter(res.Value)
		return runOutcome{Outcome: outcomeExecuted, ExitCode: failed.code}
	case errors.As(err, &start):
		return r.refuse(outcomeError, start.Code, err, "")
	case errors.As(err, &replayed):
		return r.replayFailure(&replayed.Record)
	case errors.Is(err, idem.ErrInProgress):
		return r.inProgress(&res.Record)
	case r.signals.Caught() != nil:
		return r.refuse(outcomeError, r.signals.Caught().ExitCode(), r.signals.Caught(), "")
	case errors.As(err, &interrupted):
		return r.interrupted(&interrupted.Record)
	case errors.Is(err, idem.ErrMismatch):
		return r.mismatch(err)
	case errors.Is(err, idem.ErrLocked):
		return r.locked(err)
	case errors.Is(err, idem.ErrInvalidInput):
		return r.refuse(outcomeError, exitUsage, err, "")
	case errors.As(err, &own):
		return r.refuse(outcomeError, own.code, own.err, own.try)
	}
	return r.refuse(outcomeError, exitRunFailure, err, "")
}

// refuse prints an error as every command does.
func (r *onceRun) refuse(outcome string, code int, err error, try string) runOutcome {
	o := runOutcome{Outcome: outcome, ExitCode: code, Error: r.tell("%w", err)}
	if try != "" {
		fmt.Fprintf(r.app.err, "Try: %s\n", printable(try))
	}
	return o
}

// tell prints what the result file is to say, too.
func (r *onceRun) tell(format string, args ...any) string {
	text := fmt.Errorf(format, args...).Error()
	r.app.warn("%s", printable(text))
	return text
}

// notesAfter tells what a repeat of the run that has just ended will lack.
func (r *onceRun) notesAfter(res runner.Result) {
	if res.NotKept > 0 {
		r.app.note("idemctl: output beyond --max-output was not kept for repeats (%s)", render.Bytes(res.NotKept))
	}
	if res.LeftBehind {
		r.app.note("idemctl: the command left a process behind that keeps its output: what that prints from now on is lost, and may end it")
	}
	if res.Unwritten != nil && !runner.IsBrokenPipe(res.Unwritten) {
		r.app.warn("output could not be printed, a repeat prints it again: %s", printable(res.Unwritten.Error()))
	}
}

// replay prints what an earlier run has printed.
func (r *onceRun) replay(res runner.Result, rec *idem.Record) runOutcome {
	if err := runner.Replay(res, r.app.out, r.app.err); err != nil && !runner.IsBrokenPipe(err) {
		return r.refuse(outcomeError, exitRunFailure, fmt.Errorf("print the recorded output: %w", err), "")
	}
	what := fmt.Sprintf("ran %s ago, took %s", since(r.store.Now(), res.StartedAt), render.Age(res.Duration))
	if rec.Note != "" {
		what = rec.Note
	}
	what += fmt.Sprintf(", exit %d", res.ExitCode)
	if res.NotKept > 0 {
		what += fmt.Sprintf("; %s of its output were not kept", render.Bytes(res.NotKept))
	}
	r.app.note("idemctl: replayed %s (%s)", printable(r.key.String()), printable(what))
	return runOutcome{Outcome: outcomeReplayed, ExitCode: res.ExitCode}
}

// replayFailure replays a run that was recorded as failed.
func (r *onceRun) replayFailure(rec *idem.Record) runOutcome {
	res, err := idem.DecodeValue[runner.Result](*rec)
	if err == nil && rec.ValueOmitted > 0 {
		err = idem.ErrValueNotKept
	}
	if err != nil {
		return r.refuse(outcomeError, exitRunFailure, fmt.Errorf("%w: %w", &idem.FailedError{Record: *rec}, err), "")
	}
	return r.replay(res, rec)
}

func (r *onceRun) inProgress(rec *idem.Record) runOutcome {
	what := fmt.Sprintf("%s is in progress elsewhere, for %s", r.key, since(r.store.Now(), rec.StartedAt))
	if pid := ownerPID(rec.Owner); pid != 0 {
		what += fmt.Sprintf(" (pid %d)", pid)
	}
	if caught := r.signals.Caught(); caught != nil {
		return r.refuse(outcomeInProgress, caught.ExitCode(), fmt.Errorf("%s; waiting was %w", what, caught), "")
	}
	return r.refuse(outcomeInProgress, exitRunInProgress, errors.New(what), "again later, or with --wait 10m")
}

// ownerPID is the process behind an owner, or 0 if it cannot be told.
func ownerPID(owner string) int {
	owner, _, _ = strings.Cut(owner, "#")
	id, err := procid.Parse(owner)
	if err != nil || id.Liveness() != procid.Alive {
		return 0
	}
	return id.PID()
}

func (r *onceRun) mismatch(err error) runOutcome {
	var m *idem.MismatchError
	errors.As(err, &m)
	return r.refuse(outcomeMismatch, exitRunFailure,
		fmt.Errorf("%s was used before with other content, different: %s", r.key, strings.Join(m.Parts, ", ")),
		"another --key for another intent")
}

func (r *onceRun) locked(err error) runOutcome {
	var e *idem.LockedError
	try := ""
	if errors.As(err, &e) {
		try = lockedHint(e)
	}
	return r.refuse(outcomeLocked, exitLocked, err, try)
}

// lostRecord: the command ran, but a repeat will not know how it ended.
func (r *onceRun) lostRecord(res runner.Result, err error) runOutcome {
	r.notesAfter(res)
	o := runOutcome{Outcome: outcomeError, ExitCode: exitRunFailure, CommandExitCode: &res.ExitCode}
	o.Error = r.tell("THE COMMAND RAN (exit %d), BUT THAT WAS NOT RECORDED: %w", res.ExitCode, err)
	r.settleHelp(err)
	return o
}

// cutShort: the command did not come to its own end in this call.
func (r *onceRun) cutShort(res runner.Result, rec *idem.Record, cut *runner.CutShortError) runOutcome {
	r.notesAfter(res)
	o := runOutcome{Outcome: outcomeInterrupted, ExitCode: res.ExitCode}
	if cut.TimedOut {
		o.Outcome = outcomeTimeout
	}
	o.Error = r.tell("%w: nobody knows how far attempt %d of %s got", cut, rec.Attempt, r.key)
	r.settleHelp(cut)
	return o
}

// interrupted: an earlier attempt did not come to its end; nothing ran now.
func (r *onceRun) interrupted(rec *idem.Record) runOutcome {
	why := "its process is gone"
	switch {
	case rec.Error != "":
		why = rec.Error
	case rec.State == idem.Processing && r.store.Now().After(rec.LeaseUntil):
		why = "it gave no sign of life for too long"
	}
	o := runOutcome{Outcome: outcomeInterrupted, ExitCode: exitRunInterrupted}
	o.Error = r.tell("attempt %d of %s was interrupted, its outcome is unknown: %s (began %s ago); nothing ran now", rec.Attempt,
		r.key, why, since(r.store.Now(), rec.StartedAt))
	r.settleHelp(nil)
	return o
}

// settleHelp says what to do about the key. An attempt that has lost it may have
// nothing left to settle.
func (r *onceRun) settleHelp(err error) {
	if errors.Is(err, idem.ErrLeaseLost) {
		if says := r.afterLoss(); says != "" {
			fmt.Fprintln(r.app.err, says)
			return
		}
	}
	r.app.settleHelp(r.key)
	fmt.Fprintln(r.app.err, "If running twice does no harm, run it with --on-interrupted rerun.")
}

// afterLoss looks at what is in the place of the record that the attempt has
// lost. It returns "" if that can be settled, or if nobody knows.
func (r *onceRun) afterLoss() string {
	ctx, cancel := context.WithTimeout(context.Background(), r.app.flags.lockTimeout+time.Second)
	defer cancel()
	rec, err := r.store.Get(ctx, r.key)
	switch {
	case errors.Is(err, idem.ErrNotFound):
		return "There is nothing to settle: the next call runs the command."
	case err != nil || rec.State == idem.Interrupted, rec.State == idem.Processing && !r.store.Now().Before(rec.LeaseUntil):
		return ""
	}
	return "The key is no longer this call's to settle: " + r.app.keyHint("get", r.key, "")
}

// since is how long ago t was, never negative.
func since(now, t time.Time) string { return render.Age(max(0, now.Sub(t))) }
