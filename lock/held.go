package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/idembolt/idem"
)

// Held is a lock that was taken. Unlock it when the work is done. Its methods may
// be called concurrently, and more than once.
type Held struct {
	name   string
	fence  uint64
	once   sync.Once
	unlock chan struct{} // closed by Unlock
	lost   chan struct{} // closed when why is set
	why    error
	ended  chan struct{} // closed when the goroutine that holds the lock is done; found and err are set
	found  idem.Record
	err    error
}

func newHeld(name string) *Held {
	return &Held{name: name, unlock: make(chan struct{}), lost: make(chan struct{}), ended: make(chan struct{})}
}

// Name returns the name of the lock.
func (h *Held) Name() string { return h.name }

// Fence returns a number that is higher than that of every earlier holder of the
// name, also of one that was killed. A resource that remembers the highest number
// it has seen can refuse the late write of a holder that lost the lock.
func (h *Held) Fence() uint64 { return h.fence }

// Lost returns a channel that is closed when the lock was lost: it could not be
// renewed in time, or its record was removed, or the guard was shut down. It is
// not closed by Unlock.
func (h *Held) Lost() <-chan struct{} { return h.lost }

// Err returns nil while the lock is held, as far as this process knows. After that
// it matches ErrLost, with the reason, or is ErrReleased.
func (h *Held) Err() error {
	select {
	case <-h.lost:
		return h.why
	default:
	}
	select {
	case <-h.unlock:
		return ErrReleased
	default:
		return nil
	}
}

// Unlock gives the lock back and waits until that is durable. It returns an error
// that matches ErrLost if the lock was lost before: what was done under it may not
// have been alone. With another error of the store the lock may stay taken, no
// longer than its lease.
//
// If ctx ends first, or has ended, the lock is given back all the same, without
// anybody waiting for it, and the error matches ctx.Err(). A further Unlock
// changes nothing and returns what became of the first.
func (h *Held) Unlock(ctx context.Context) error {
	h.once.Do(func() { close(h.unlock) })
	select {
	case <-h.ended:
		return h.result()
	default:
	}
	select {
	case <-h.ended:
		return h.result()
	case <-ctx.Done():
		return fmt.Errorf("unlock %q: still being given back: %w", h.name, ctx.Err())
	}
}

// result is what Unlock returns once the goroutine has ended.
func (h *Held) result() error {
	if h.why != nil {
		return h.why
	}
	if h.err != nil {
		return fmt.Errorf("unlock %q: %w", h.name, h.err)
	}
	return nil
}

// hold lasts as long as the lock is held.
func (h *Held) hold(ctx context.Context, store idem.Store, key idem.Key) {
	select {
	case <-h.unlock:
		// Giving back what is not there is no error to the guard. But if the
		// process stood still, somebody else may have had the lock meanwhile and
		// have given it back, before the renewal could notice.
		if _, err := store.Get(ctx, key); errors.Is(err, idem.ErrNotFound) {
			h.lose(fmt.Errorf("%w: its record was removed", idem.ErrLeaseLost))
		}
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		h.lose(context.Cause(ctx))
	}
}

// lose is called by the goroutine that holds the lock. The first reason counts.
func (h *Held) lose(cause error) {
	if h.why == nil {
		h.why = fmt.Errorf("lock %q: %w: %w", h.name, ErrLost, cause)
		close(h.lost)
	}
}

// end notes how the attempt has ended. Anything else than a release means that it
// was not taken, or not given back.
func (h *Held) end(found idem.Record, err error) {
	h.found, h.err = found, err
	var unwritten *idem.NotRecordedError
	switch {
	case h.fence == 0: // it was not taken
	case errors.As(err, &unwritten):
		if errors.Is(err, idem.ErrLeaseLost) { // somebody else had it when it was to be given back
			h.lose(unwritten.Store)
		}
	case errors.Is(err, idem.ErrInterrupted): // it was lost while it was being given back
		h.lose(idem.ErrLeaseLost)
	default:
		h.err = nil
	}
	close(h.ended)
}

// refusal is the error of a lock that was not taken.
func (h *Held) refusal(ctx context.Context) error {
	var busy *idem.InProgressError
	switch {
	case errors.As(h.err, &busy):
		return &HeldError{Name: h.name, Record: busy.Record, RetryAfter: busy.RetryAfter, Waited: ctx.Err()}
	case h.err == nil, errors.Is(h.err, idem.ErrFailed):
		return fmt.Errorf("lock %q: the key holds a record of kind %q that is %s: remove it to use the lock", h.name, h.found.Kind, h.found.State)
	case ctx.Err() != nil && !errors.Is(h.err, idem.ErrNotRecorded):
		return fmt.Errorf("lock %q: %w", h.name, ctx.Err())
	}
	return h.err // which names the key and what was tried
}
