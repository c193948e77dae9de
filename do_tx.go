package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DoTx is Do for work that is done in the store's own file: fn changes buckets and
// records through its transaction, and what it wrote, the record of the key and
// the value commit together. After a crash there is all of it or nothing, so the
// key of a DoTx is never interrupted by one.
//
// The guard must work on a *BoltStore; for others the error is ErrNoTransactions.
// See Tx for what a transaction is. fn may run more than once before it commits,
// and must do nothing that cannot be repeated, except through its transaction;
// what it does elsewhere happens although the transaction may not.
//
// Until the commit the key is held in memory: other calls find it in progress.
// While fn runs nobody else has to wait for it.
//
// If fn returns an error nothing it wrote is kept. One marked with Permanent is
// recorded and replayed, one marked with Unknown leaves the key interrupted: fn
// must have done something outside of its transaction. Any other error frees the
// key, that of an ended context too, unless WithClassifier says otherwise. A value
// that cannot be encoded is such an error. If fn panics the key is free, and the
// panic goes on.
//
// Errors are those of Do, but never *NotRecordedError: if the commit fails, the
// work was not done either. After ErrPoisoned it is open whether it was; the next
// process to open the file sees which, all of it or nothing.
func DoTx[T any](ctx context.Context, g *Guard, key Key, input any,
	fn func(context.Context, *Tx) (T, error), opts ...CallOption,
) (Result[T], error) {
	store, err := g.BoltStore()
	if err != nil {
		return Result[T]{}, err
	}
	c, err := g.newCall(ctx, key, input, opts)
	if err != nil {
		return Result[T]{}, err
	}
	c.holds = &store.holds
	for {
		rec, a, err := g.begin(ctx, &c)
		if a != nil {
			res, err := runTx(ctx, store, a, fn)
			if errors.Is(err, errTxRaced) {
				continue
			}
			return res, err
		}
		return answered[T](rec, err)
	}
}

// runTx runs fn in transactions until one commits, or fn fails.
func runTx[T any](ctx context.Context, s *BoltStore, a *Attempt, fn func(context.Context, *Tx) (T, error)) (res Result[T], err error) {
	defer a.guard.running.Done()
	defer func() {
		s.holds.release(a.rec.Key)
		s.watch.notify(a.rec.Key)
	}()
	fnCtx := a.hold(ctx)
	ended := false
	defer func() {
		a.letGo()
		if !ended { // it panicked, or ended its goroutine
			a.guard.emit(a.call.event(EventReleased, &a.rec, errors.New("the function did not return")))
		}
	}()
	var end attemptEnd
	res.Record, err = s.transact(ctx, func(tx *Tx) error {
		tx.attempt = a
		var fnErr error
		if fnErr = a.untakenStep(); fnErr == nil { // a transaction cannot go on after steps
			res.Value, fnErr = fn(fnCtx, tx)
		}
		if err := tx.close(); err == errOpenRange { //nolint:errorlint // identity is meant
			return err
		}
		value, encodeErr := encodeValue(res.Value)
		if fnErr == nil && encodeErr != nil {
			fnErr = fmt.Errorf("encode the result: %w", encodeErr)
		}
		end = a.endOf(value, fnErr)
		return tx.finish(&end)
	})
	ended = true
	if err != nil && end.err == nil {
		res = Result[T]{} // it was not done
	}
	return res, a.reportTx(ctx, &res.Record, &end, err)
}

// attemptEnd is how the function of a DoTx has ended.
type attemptEnd struct {
	kind EventKind
	rec  Record // that is stored, unless kind is EventReleased
	err  error  // the function's
}

// endOf makes the record of the attempt's end.
func (a *Attempt) endOf(value []byte, fnErr error) attemptEnd {
	a.ran = time.Since(a.sent)
	end := attemptEnd{kind: EventExecuted, rec: a.rec, err: fnErr}
	now, retention := a.guard.now(), a.call.policy.Retention
	if fnErr == nil {
		end.rec.finish(Completed, now, retention)
		end.rec.setValue(value)
		return end
	}
	switch a.call.classifyTx(fnErr) {
	case OutcomePermanent:
		end.kind = EventFailed
		end.rec.finish(Failed, now, retention)
		end.rec.setValue(value)
	case OutcomeUnknown:
		end.kind = EventInterrupted
		end.rec.finish(Interrupted, now, retention)
	default:
		end.kind = EventReleased
	}
	end.rec.Error = cutText(fnErr.Error(), maxErrorBytes)
	return end
}

// classifyTx is the classifier for a function whose work is its transaction: an
// ended context leaves nothing open.
func (c *call) classifyTx(err error) Outcome {
	if c.ownClassifier {
		return c.classify(err)
	}
	var marked *markedError
	if errors.As(err, &marked) {
		return marked.outcome
	}
	return OutcomeNothing
}

// finish makes the record of the end part of the transaction. Of a failed one it
// is all that remains.
func (tx *Tx) finish(end *attemptEnd) error {
	if end.kind == EventReleased {
		return end.err
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if end.err != nil {
		tx.forgetWrites()
	}
	tx.end = &txEnd{over: tx.attempt.base, rec: end.rec}
	tx.size += int64(len(end.rec.Value))
	return nil
}

// forgetWrites keeps only what was read.
func (tx *Tx) forgetWrites() {
	tx.err, tx.size, tx.order = nil, 0, nil
	clear(tx.buckets)
	for _, t := range tx.records {
		t.written = false
	}
}

// reportTx emits the event of the attempt's end and picks the caller's error.
func (a *Attempt) reportTx(ctx context.Context, stored *Record, end *attemptEnd, err error) error {
	kind, result := end.kind, end.err
	switch {
	case errors.Is(err, errTxRaced):
		return err
	case end.kind == EventReleased && err != nil:
		*stored, result = Record{}, err
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()): // in time: nothing was written
		*stored, kind, result = Record{}, EventReleased, fmt.Errorf("commit %q: %w", a.rec.Key.String(), err)
	case err != nil:
		*stored = Record{}
		return a.guard.storeError(ctx, &a.call, "commit", err)
	case end.kind == EventFailed:
	case end.kind == EventInterrupted:
		result = &InterruptedError{Record: *stored, Cause: end.err}
	}
	e := a.call.event(kind, stored, result)
	e.Attempt, e.Ran = a.rec.Attempt, a.ran
	a.guard.emit(e)
	return result
}
