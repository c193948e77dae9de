package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/runner"
)

// refuseSettled returns an error unless the record is that of an interrupted
// attempt.
func (c *resolveCommand) refuseSettled(s *idem.BoltStore, rec *idem.Record) error {
	key := rec.Key.String()
	switch rec.State {
	case idem.Interrupted:
		return nil
	case idem.Processing:
		owner, _, _ := strings.Cut(rec.Owner, "#")
		if !s.Alive(owner) || !s.Now().Before(rec.LeaseUntil) {
			return nil
		}
		if pid := ownerPID(rec.Owner); pid != 0 {
			return fail(exitFailure, "", "%q is not interrupted: process %d is at work on it", key, pid)
		}
		return fail(exitFailure, "again when its lease is over", "%q is not interrupted: it is processing, trusted until %s",
			key, rec.LeaseUntil.Format(time.RFC3339))
	}
	return fail(exitFailure, c.keyHint("get", rec.Key, ""), "%q is not interrupted: it is %s", key, rec.State)
}

// release lets the next call run. Steps that have finished did happen: their record
// is kept for it to go on from.
func (c *resolveCommand) release(ctx context.Context, s *idem.BoltStore, rec idem.Record) error {
	if len(rec.Steps) == 0 {
		if err := s.Delete(ctx, rec.Key, rec.Version); err != nil {
			return c.settleError(rec.Key, err)
		}
		c.note("released %s: the next call runs", printable(rec.Key.String()))
		return nil
	}
	next := rec
	next.State, next.Resume, next.LeaseUntil = idem.Interrupted, true, time.Time{}
	next.UpdatedAt = s.Now().UTC().Truncate(time.Microsecond)
	next.Note = c.settledNote(next.UpdatedAt)
	if _, err := s.Swap(ctx, rec.Version, next); err != nil {
		return c.settleError(rec.Key, err)
	}
	c.note("released %s: the next call goes on after step %s", printable(rec.Key.String()), printable(rec.Steps[len(rec.Steps)-1].Name))
	return nil
}

func (c *resolveCommand) settledNote(now time.Time) string {
	return fmt.Sprintf("%s %s (uid %d, at %s)", settledNote, c.reason, os.Getuid(), now.Format(time.RFC3339))
}

// refuseStanding keeps a verdict off a record that stands for no work: a lock that
// was "completed" could never be taken again.
func (c *resolveCommand) refuseStanding(rec *idem.Record) error {
	if c.retry || !kindOf(rec.Kind).standing {
		return nil
	}
	return fail(exitFailure, c.keyHint("resolve", rec.Key, "--retry --reason TEXT"),
		"%q is of kind %q, which stands for no work: it can only be released", rec.Key.String(), rec.Kind)
}

// refuseValue keeps a value out that whoever asks for it could not read.
func (c *resolveCommand) refuseValue(rec *idem.Record, value []byte) error {
	switch {
	case rec.Kind == recordKindRun && c.raw:
		return usage("--raw is not for a key of idemctl run, whose value is what the command would have printed")
	case rec.Kind == recordKindRun || value == nil || c.raw || json.Valid(value):
		return nil
	}
	return fail(exitUsage, "--raw, if the function returns []byte", "value file: it is not JSON, as which Do reads a result back")
}

// settled is the record that answers repeats from now on. Being settled never
// makes the answer end sooner.
func (c *resolveCommand) settled(rec idem.Record, value []byte, now time.Time) (idem.Record, error) {
	now = now.UTC().Truncate(time.Microsecond)
	rec.UpdatedAt, rec.LeaseUntil = now, time.Time{}
	if until := now.Add(c.retention); until.After(rec.ExpiresAt) {
		rec.ExpiresAt = until
	}
	rec.Value, rec.ValueOmitted, rec.Error = value, 0, ""
	rec.Note, rec.Steps, rec.Resume = c.settledNote(now), nil, false
	rec.State = idem.Completed
	if !c.completed {
		rec.State, rec.Error = idem.Failed, c.failed
	}
	switch {
	case rec.Kind == recordKindRun:
		var err error
		rec.Value, err = c.runValue(&rec, value)
		return rec, err
	case c.completed && value == nil:
		rec.ValueOmitted = 1 // repeats are told that the result was not kept
	}
	return rec, nil
}

// runValue is the result of a run as the person tells it.
func (c *resolveCommand) runValue(rec *idem.Record, value []byte) ([]byte, error) {
	run := runner.Result{StartedAt: rec.StartedAt} // nobody knows how long it took
	if c.completed && len(value) > 0 {
		run.Chunks = []runner.Chunk{{Stream: runner.Stdout, Data: value}}
	}
	if !c.completed {
		run.ExitCode = exitFailure
		run.Chunks = []runner.Chunk{{Stream: runner.Stderr, Data: []byte(c.failed + "\n")}}
	}
	enc, err := json.Marshal(run)
	if err == nil && len(enc) > idem.MaxValueBytes {
		err = fmt.Errorf("value file: it is too large: a run keeps at most %d bytes of output", runner.MaxKeep)
	}
	return enc, err
}
