package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// lease keeps a claimed record alive while its function runs. It renews at a
// third of the lease's length by a timer, so a run that is shorter costs no
// goroutine and no write.
type lease struct {
	guard  *Guard
	policy Policy
	cancel context.CancelCauseFunc // of the function's context

	// writing is cancelled by stop, so that ending an attempt never waits for
	// a renewal that waits for a lock.
	writing context.Context
	abort   context.CancelFunc

	mu    sync.Mutex // held during a renewal: stop waits for it
	rec   Record     // as last written
	until time.Time  // by this process's clock: when to give up, see giveUpAt
	timer *time.Timer
	ended bool
	lost  error
}

// startLease begins to renew rec, which was sent to the store at the given
// time. It cancels the function's context with ErrLeaseLost when the key is
// taken over or cannot be renewed in time.
func startLease(ctx context.Context, g *Guard, p Policy, rec Record, sent time.Time, cancel context.CancelCauseFunc) *lease {
	l := &lease{guard: g, policy: p, cancel: cancel, rec: rec, until: giveUpAt(sent, p.Lease)}
	l.writing, l.abort = context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock() // the timer may fire before it is stored
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(p.Lease/3, l.renew)
	return l
}

// giveUpAt is when an attempt whose last renewal was sent at the given time must
// stop: a twelfth of the lease before others may take over, so that the function
// has heard of it by then.
func giveUpAt(sent time.Time, lease time.Duration) time.Time { return sent.Add(lease - lease/12) }

// stop ends the renewing, waits for one under way, and returns the record as
// last written and why the lease was lost, if it was.
func (l *lease) stop() (Record, error) {
	l.abort()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.timer.Stop()
	return l.rec, l.lost
}

func (l *lease) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.lost != nil {
		return
	}
	rec, err := l.swap(l.rec)
	switch {
	case err == nil:
	case errors.Is(err, ErrConflict) && rec.Owner == l.rec.Owner && rec.State == Processing:
		l.rec = rec // an earlier renewal was written although it reported an error
		l.timer.Reset(0)
	case errors.Is(err, ErrConflict):
		l.lose(leaseLost(rec))
	case errors.Is(err, ErrClosed), errors.Is(err, ErrPoisoned): // which do not pass
		l.lose(fmt.Errorf("%w: it could not be renewed: %w", ErrLeaseLost, err))
	case !time.Now().Before(l.until):
		l.lose(fmt.Errorf("%w: it could not be renewed in time: %w", ErrLeaseLost, err))
	default: // the store may come back before the lease is over
		l.timer.Reset(min(l.policy.Lease/12, time.Until(l.until)))
	}
}

// leaseLost is the error of an attempt that found current in place of its own
// record.
func leaseLost(current Record) error {
	if current.Version == 0 {
		return fmt.Errorf("%w: its record was removed", ErrLeaseLost)
	}
	return fmt.Errorf("%w: another attempt took the key over", ErrLeaseLost)
}

func (l *lease) lose(err error) {
	l.lost = err
	l.guard.emit(Event{
		Kind: EventLeaseLost, Key: l.rec.Key, Version: l.rec.Version, Attempt: l.rec.Attempt,
		TraceID: l.rec.TraceID, RecordKind: l.rec.Kind, Err: err,
	})
	l.cancel(err)
}
