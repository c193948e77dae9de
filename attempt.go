package idem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// finishTimeout bounds the writing of an attempt's end, which does not use the
// caller's context: a client that hangs up must not lose the record.
const finishTimeout = 30 * time.Second

// Attempt is one run of a guarded function. Its methods may be called
// concurrently. It must not be used after the function has returned.
type Attempt struct {
	guard  *Guard
	call   call
	rec    Record // as claimed
	base   uint64 // of a DoTx: version of the record that its own will replace
	sent   time.Time
	ran    time.Duration
	lease  *lease // nil in a DoTx
	steps  stepper
	cancel context.CancelCauseFunc
}

func newAttempt(g *Guard, c *call, rec Record, sent time.Time) *Attempt {
	return &Attempt{guard: g, call: *c, rec: rec, sent: sent}
}

// Key returns the key the attempt holds.
func (a *Attempt) Key() Key { return a.rec.Key }

// Number counts the attempts under this record, from 1. It is above 1 after an
// interruption, not after a released failure.
func (a *Attempt) Number() int { return a.rec.Attempt }

// Version is the fencing number of the attempt: greater than that of every
// earlier attempt of the key. A resource that remembers the highest number it
// has seen can refuse the late write of an attempt that was taken over.
func (a *Attempt) Version() uint64 { return a.rec.Version }

// TraceID returns the caller's trace id, or "".
func (a *Attempt) TraceID() string { return a.rec.TraceID }

// ChildKey is Key.ChildKey of the attempt's key.
func (a *Attempt) ChildKey(name string) string { return a.rec.Key.ChildKey(name) }

type attemptContextKey struct{}

// AttemptFrom returns the attempt that ctx was handed to a function with. It is
// how a function wrapped by Func reaches its attempt.
func AttemptFrom(ctx context.Context) (*Attempt, bool) {
	a, ok := ctx.Value(attemptContextKey{}).(*Attempt)
	return a, ok
}

// start begins to renew the lease and returns the function's context. Its cause
// is ErrLeaseLost if the attempt loses the key.
func (a *Attempt) start(ctx context.Context) context.Context {
	ctx, a.cancel = context.WithCancelCause(context.WithValue(ctx, attemptContextKey{}, a))
	a.lease = startLease(ctx, a.guard, a.call.policy, a.rec, a.sent, a.cancel)
	a.guard.began(a)
	return ctx
}

// hold is start for an attempt that holds its key in memory.
func (a *Attempt) hold(ctx context.Context) context.Context {
	ctx, a.cancel = context.WithCancelCause(context.WithValue(ctx, attemptContextKey{}, a))
	a.guard.began(a)
	return ctx
}

// letGo is stop for such an attempt.
func (a *Attempt) letGo() {
	a.guard.ended(a)
	a.cancel(nil)
}

// complete records that the function succeeded.
func (a *Attempt) complete(value []byte, encodeErr error) (Record, error) {
	rec, lost := a.stop()
	end := rec
	end.finish(Completed, a.guard.now(), a.call.policy.Retention)
	end.setValue(value)
	if encodeErr != nil {
		encodeErr = fmt.Errorf("%w: %w", ErrValueNotKept, encodeErr)
		end.ValueOmitted, end.Error = 1, cutText(encodeErr.Error(), maxErrorBytes)
	}
	stored, err := a.settle(rec.Version, end, false)
	return a.report(EventExecuted, stored, lost, encodeErr, nil, err)
}

// fail records that the function failed, by what its error means. After a lost
// lease it means nothing: another attempt may be at work.
func (a *Attempt) fail(value []byte, fnErr error, outcome Outcome) (Record, error) {
	rec, lost := a.stop()
	if lost != nil {
		outcome = OutcomeUnknown
	}
	end, now, retention := rec, a.guard.now(), a.call.policy.Retention
	switch outcome {
	case OutcomeNothing:
		if len(rec.Steps) > 0 {
			return a.pause(rec, fnErr, lost)
		}
		stored, err := a.settle(rec.Version, end, true)
		return a.report(EventReleased, stored, lost, fnErr, fnErr, err)
	case OutcomePermanent:
		end.finish(Failed, now, retention)
		end.setValue(value)
		end.Error = cutText(fnErr.Error(), maxErrorBytes)
		stored, err := a.settle(rec.Version, end, false)
		return a.report(EventFailed, stored, lost, fnErr, fnErr, err)
	default:
		end.finish(Interrupted, now, retention)
		end.Error = cutText(fnErr.Error(), maxErrorBytes)
		stored, err := a.settle(rec.Version, end, false)
		return a.report(EventInterrupted, stored, lost, &InterruptedError{Record: stored, Cause: fnErr}, fnErr, err)
	}
}

// pause keeps the steps of an attempt that failed with nothing left open, for the
// next one to go on from.
func (a *Attempt) pause(rec Record, fnErr, lost error) (Record, error) {
	end := rec
	end.finish(Interrupted, a.guard.now(), a.call.policy.Retention)
	end.Resume, end.Error = true, cutText(fnErr.Error(), maxErrorBytes)
	stored, err := a.settle(rec.Version, end, false)
	return a.report(EventReleased, stored, lost, fnErr, fnErr, err)
}

// stop ends the function's context and the renewing of the lease.
func (a *Attempt) stop() (Record, error) {
	a.ran = time.Since(a.sent)
	rec, lost := a.lease.stop()
	a.guard.ended(a)
	a.cancel(nil)
	return rec, lost
}

// report emits the event of the attempt's end and picks the caller's error:
// result if the end was written, else *NotRecordedError.
func (a *Attempt) report(kind EventKind, stored Record, lost, result, fnErr, storeErr error) (Record, error) {
	if storeErr != nil {
		result = &NotRecordedError{Key: a.rec.Key, Store: storeErr, Func: fnErr}
		kind = EventStoreError
		if errors.Is(storeErr, ErrLeaseLost) {
			kind = EventLeaseLost
		}
	}
	if kind != EventLeaseLost || lost == nil { // else it was reported when it happened
		e := a.call.event(kind, &stored, result)
		e.Ran = a.ran
		a.guard.emit(e)
	}
	return stored, result
}

// settle writes the end of the attempt, or deletes the record to release the
// key. It keeps trying while the file is only locked, and tries once more after
// an error that leaves open what was written. When an earlier write of this
// attempt turns out to have been made, it goes on from there.
func (a *Attempt) settle(version uint64, end Record, release bool) (Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	again := false
	for pause := firstPoll; ; pause = min(2*pause, slowestPoll) {
		stored, err := a.write(ctx, version, end, release)
		switch {
		case errors.Is(err, ErrConflict) && stored.Owner == end.Owner && stored.State == Processing:
			version = stored.Version
		case errors.Is(err, ErrConflict) && stored.isWriteOf(&end):
			return stored, nil
		case errors.Is(err, ErrConflict):
			return end, leaseLost(stored)
		case err == nil:
			return stored, nil
		case errors.Is(err, ErrLocked):
		case again || nothingWritten(err):
			return end, err
		default:
			again = true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return end, err
		}
	}
}

// isWriteOf reports whether r is what an attempt has written as its end: not what
// a person or a ReconcileFunc has made of its record meanwhile.
func (r *Record) isWriteOf(end *Record) bool {
	return r.Owner == end.Owner && r.State == end.State && r.UpdatedAt.Equal(end.UpdatedAt) &&
		r.Note == end.Note && bytes.Equal(r.Value, end.Value)
}

// swap writes an end as durably as the policy asks for. An end that a person may
// have to settle is worth a sync.
func (a *Attempt) swap(ctx context.Context, version uint64, end Record) (Record, error) {
	if a.call.policy.Durability == Relaxed && end.State != Interrupted {
		if store, ok := a.guard.store.(RelaxedStore); ok {
			return store.SwapRelaxed(ctx, version, end)
		}
	}
	return a.guard.store.Swap(ctx, version, end)
}

func (a *Attempt) write(ctx context.Context, version uint64, end Record, release bool) (Record, error) {
	if !release {
		return a.swap(ctx, version, end)
	}
	err := a.guard.store.Delete(ctx, end.Key, version)
	current := end
	if errors.Is(err, ErrConflict) { // Delete does not say with what
		var getErr error
		if current, getErr = a.guard.store.Get(ctx, end.Key); getErr != nil {
			err = getErr
		}
	}
	if errors.Is(err, ErrNotFound) {
		return end, nil // gone already, which is what was asked for
	}
	return current, err
}
