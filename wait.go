package idem

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// signalledPoll is how often a waiter looks at the key although the store
	// signals changes: an owner outside this process dies without a signal.
	signalledPoll = time.Second
	firstPoll     = 5 * time.Millisecond
	slowestPoll   = 500 * time.Millisecond
)

// await waits until the attempt that holds the key has ended and returns the
// record found then, or ErrNotFound if it released the key. When the time to
// wait is over it returns *InProgressError.
func (g *Guard) await(ctx context.Context, c *call, rec *Record) (Record, error) {
	if c.wait == 0 {
		return *rec, g.inProgress(c, rec, nil)
	}
	if c.began.IsZero() {
		c.began = time.Now()
	}
	defer func() { c.waited = time.Since(c.began) }()
	limit := time.NewTimer(c.wait - min(c.wait, time.Since(c.began)))
	defer limit.Stop()

	changed, stop := g.watch(c.key)
	defer func() { stop() }()
	for poll := firstPoll; ; poll = min(2*poll, slowestPoll) {
		current, err := g.store.Get(ctx, c.key) // after watch, so that no change is missed
		if err != nil && ctx.Err() != nil {
			return *rec, g.inProgress(c, rec, ctx.Err())
		}
		if err != nil || current.State != Processing || current.Owner != rec.Owner || !g.held(&current) {
			return current, err
		}
		next := time.NewTimer(g.pollAfter(poll, &current))
		select {
		case <-changed:
			stop()
			changed, stop = g.watch(c.key)
		case <-next.C:
		case <-limit.C:
			next.Stop()
			return current, g.inProgress(c, &current, nil)
		case <-ctx.Done():
			next.Stop()
			return current, g.inProgress(c, &current, ctx.Err())
		}
		next.Stop()
	}
}

// watch is a channel that never fires where the store cannot signal.
func (g *Guard) watch(key Key) (<-chan struct{}, func()) {
	if g.waiter == nil {
		return nil, func() {}
	}
	return g.waiter.Watch(key)
}

// pollAfter is when to look again if nothing is signalled: no later than the
// end of the lease, and with jitter so that waiters of several processes spread.
func (g *Guard) pollAfter(poll time.Duration, rec *Record) time.Duration {
	if g.waiter != nil {
		poll = signalledPoll
	} else {
		poll += rand.N(poll/2 + 1)
	}
	return max(time.Millisecond, min(poll, rec.LeaseUntil.Sub(g.now())))
}

func (g *Guard) inProgress(c *call, rec *Record, cause error) error {
	if !c.began.IsZero() {
		c.waited = time.Since(c.began)
	}
	var err error = &InProgressError{Record: *rec, RetryAfter: g.retryAfter(rec)}
	if cause != nil {
		err = fmt.Errorf("%w: waiting ended: %w", err, cause)
	}
	if !c.began.IsZero() {
		c.waited = time.Since(c.began)
	}
	g.emit(c.event(EventInProgress, rec, err))
	return err
}

// retryAfter guesses that an attempt needs about as long again as it has taken
// so far, which needs no history and errs on neither side for long.
func (g *Guard) retryAfter(rec *Record) time.Duration {
	elapsed := g.now().Sub(rec.StartedAt).Round(time.Second)
	return min(max(elapsed, time.Second), 30*time.Second)
}
