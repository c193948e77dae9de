package idem

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// begin brings a call to its answer: a finished record to replay (the attempt
// is nil), a claimed attempt to run, or an error. Each turn of the loop deals
// with what the last read or lost race has shown under the key.
func (g *Guard) begin(ctx context.Context, c *call) (Record, *Attempt, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, nil, err
	}
	rec, err := g.store.Get(ctx, c.key)
	for {
		var a *Attempt
		switch {
		case errors.Is(err, ErrNotFound):
			rec, a, err = g.claim(ctx, c, nil)
		case isAnswer(err):
			return rec, nil, err
		case err != nil:
			return Record{}, nil, g.storeError(ctx, c, "claim", err)
		default:
			todo, refusal := g.judge(c, &rec)
			switch todo {
			case answer:
				return rec, nil, refusal
			case waitFor:
				rec, err = g.await(ctx, c, &rec)
			case takeOver:
				rec, a, err = g.claim(ctx, c, &rec)
			case reconcile:
				rec, a, err = g.reconcile(ctx, c, &rec)
			}
		}
		if a != nil {
			return rec, a, nil
		}
	}
}

// isAnswer tells the guard's own errors from a failure of the store.
func isAnswer(err error) bool {
	return errors.Is(err, ErrInProgress) || errors.Is(err, ErrInterrupted)
}

// todo is what a call does about the record it met.
type todo int

const (
	answer    todo = iota + 1 // with the record, or with the error beside it
	waitFor                   // another attempt is at work
	takeOver                  // run again after an interruption
	reconcile                 // ask what became of the interrupted attempt
)

// judge is the table of the guard's behaviour: what a call does about a live
// record. It emits the event of a call that ends here.
func (g *Guard) judge(c *call, rec *Record) (todo, error) {
	if !rec.Fingerprint.Equal(c.fp) {
		err := &MismatchError{Record: *rec, Parts: rec.Fingerprint.Diff(c.fp)}
		e := c.event(EventMismatch, rec, err)
		e.Parts, e.Fingerprint = err.Parts, c.fp
		g.emit(e)
		return answer, err
	}
	switch {
	case rec.State == Completed:
		g.emit(c.event(EventReplayed, rec, nil))
		return answer, nil
	case rec.State == Failed:
		err := &FailedError{Record: *rec}
		g.emit(c.event(EventReplayed, rec, err))
		return answer, err
	case rec.State == Processing && g.held(rec):
		return waitFor, nil
	case rec.Resume, c.policy.OnInterrupted.rerun:
		return takeOver, nil
	case c.policy.OnInterrupted.reconcile != nil:
		return reconcile, nil
	}
	err := &InterruptedError{Record: *rec}
	g.emit(c.event(EventInterrupted, rec, err))
	return answer, err
}

// held reports whether the owner of a Processing record may still be at work.
func (g *Guard) held(rec *Record) bool {
	owner, _, _ := strings.Cut(rec.Owner, "#")
	return g.now().Before(rec.LeaseUntil) && g.alive(owner)
}

// claim makes the record of the next attempt and stores it: over prev, or as
// the first one. A lost race is not an error: the record that won is returned
// without an attempt, or ErrNotFound if none is there any more.
func (g *Guard) claim(ctx context.Context, c *call, prev *Record) (Record, *Attempt, error) {
	if err := g.enter(); err != nil {
		return Record{}, nil, err
	}
	sent := time.Now()
	next := g.attemptRecord(c, prev)
	if c.holds != nil {
		return g.hold(c, next, prev, sent)
	}
	var rec Record
	var err error
	if prev == nil {
		rec, err = g.store.Create(ctx, next)
	} else {
		rec, err = g.store.Swap(ctx, prev.Version, next)
	}
	if err == nil {
		return rec, newAttempt(g, c, rec, sent), nil
	}
	g.running.Done()
	if !errors.Is(err, ErrConflict) {
		g.withdraw(ctx, next, prev, err)
		return Record{}, nil, err
	}
	if rec.Version == 0 {
		return Record{}, nil, ErrNotFound
	}
	return rec, nil, nil
}

// hold is claim for a DoTx.
func (g *Guard) hold(c *call, next Record, prev *Record, sent time.Time) (Record, *Attempt, error) {
	var over uint64
	if prev != nil {
		over = prev.Version
	}
	if other, ok := c.holds.take(next, over); !ok {
		g.running.Done()
		return other, nil, nil
	}
	a := newAttempt(g, c, next, sent)
	a.base = over
	return next, a, nil
}

func (g *Guard) attemptRecord(c *call, prev *Record) Record {
	now := g.now()
	rec := Record{
		Key: c.key, State: Processing, Fingerprint: c.fp, Kind: c.kind, Attempt: 1, TraceID: c.traceID,
		Owner:     fmt.Sprintf("%s#%016x", g.owner(), rand.Uint64()),
		CreatedAt: now, StartedAt: now, UpdatedAt: now,
		LeaseUntil: now.Add(c.policy.Lease), ExpiresAt: now.Add(c.policy.Lease + c.policy.Retention),
	}
	if prev != nil {
		rec.CreatedAt, rec.Attempt, rec.Steps = prev.CreatedAt, prev.Attempt+1, prev.Steps
	}
	return rec
}

// withdraw undoes a claim whose write ended with an open outcome, best effort:
// the function has not run, so a new key should not look interrupted, and one
// that was taken over goes back to what it was.
func (g *Guard) withdraw(ctx context.Context, claimed Record, prev *Record, err error) {
	if ctx.Err() == nil && nothingWritten(err) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	rec, err := g.store.Get(ctx, claimed.Key)
	switch {
	case err != nil || rec.Owner != claimed.Owner: // nothing was written
	case prev == nil:
		_ = g.store.Delete(ctx, rec.Key, rec.Version) // if this fails too, the lease ends the claim
	default:
		_, _ = g.store.Swap(ctx, rec.Version, *prev) // likewise
	}
}

// nothingWritten reports whether a failed write has changed nothing, or nothing
// that could be looked up.
func nothingWritten(err error) bool {
	for _, definite := range []error{ErrFull, ErrClosed, ErrReadOnly, ErrLocked, ErrInvalidRecord, ErrInvalidKey, ErrPoisoned} {
		if errors.Is(err, definite) {
			return true
		}
	}
	return false
}

// reconcile asks what became of an interrupted attempt and acts on the verdict.
func (g *Guard) reconcile(ctx context.Context, c *call, rec *Record) (Record, *Attempt, error) {
	verdict, err := c.policy.OnInterrupted.reconcile(ctx, *rec)
	if err == nil && verdict.known && !verdict.done {
		return g.claim(ctx, c, rec)
	}
	if err == nil && verdict.err != nil {
		err = fmt.Errorf("encode the reconciled value: %w", verdict.err)
	}
	if err != nil || !verdict.known {
		err := &InterruptedError{Record: *rec, Cause: err}
		g.emit(c.event(EventInterrupted, rec, err))
		return *rec, nil, err
	}
	settled := *rec
	settled.finish(Completed, g.now(), c.policy.Retention)
	settled.setValue(verdict.value)
	settled.Note = "reconciled"
	stored, err := g.store.Swap(ctx, rec.Version, settled)
	if errors.Is(err, ErrConflict) {
		err = nil
		if stored.Version == 0 {
			err = ErrNotFound
		}
	}
	return stored, nil, err
}

// finish turns a Processing record into one that answers repeats.
func (r *Record) finish(s State, now time.Time, retention time.Duration) {
	r.State, r.UpdatedAt = s, now
	r.LeaseUntil, r.ExpiresAt = time.Time{}, now.Add(retention)
	r.Value, r.ValueOmitted, r.Error = nil, 0, ""
	if s == Completed || s == Failed {
		r.Steps = nil // nobody goes on from them
	}
}

// setValue stores the value, or only its size if it is too large to keep.
func (r *Record) setValue(value []byte) {
	if len(value) > MaxValueBytes {
		r.Value, r.ValueOmitted = nil, int64(len(value))
		return
	}
	r.Value, r.ValueOmitted = value, 0
}
