package lock

import (
	"context"
	"errors"
	"time"

	"github.com/idembolt/idem"
)

// DefaultTTL is the lease of a lock unless WithTTL changes it.
const DefaultTTL = 30 * time.Second

const (
	kind = "lock"
	// remembered is how long a record stays of a holder that went away: for
	// people who look for it. The next holder takes it over at any time.
	remembered = 24 * time.Hour
)

// Locks are the locks of a scope. They are safe for concurrent use, also by
// several processes if the guard's store is.
type Locks struct {
	guard *idem.Guard
	scope string
	ttl   time.Duration
}

// Option configures Locks. The last one wins.
type Option func(*Locks)

// WithTTL sets the lease: how long a lock stays with a holder that gives no sign
// of life, where the store does not know that it is gone. It is renewed at a third
// of its length, so it need not cover the work. At least idem.MinLease. The
// default is DefaultTTL.
func WithTTL(d time.Duration) Option { return func(l *Locks) { l.ttl = d } }

// New returns the locks of a scope, which names what they protect and, where there
// are tenants, the tenant. It must not be a scope that anything else on the
// guard's store uses. Of the guard's options those about policy, kind, waiting and
// classification do not matter to locks.
//
// Errors: *idem.KeyError for a scope that breaks a rule of idem.Key,
// *idem.PolicyError for a lease that a policy could not have.
func New(guard *idem.Guard, scope string, opts ...Option) (*Locks, error) {
	if guard == nil {
		return nil, errors.New("lock: New needs a guard")
	}
	l := &Locks{guard: guard, scope: scope, ttl: DefaultTTL}
	for _, o := range opts {
		o(l)
	}
	if err := (idem.Key{Scope: scope, ID: "any"}).Validate(); err != nil {
		return nil, err
	}
	if err := l.policy().Validate(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Locks) policy() idem.Policy {
	return idem.Policy{Lease: l.ttl, Retention: remembered, OnInterrupted: idem.Rerun()}
}

// TryLock takes the lock if it is free, and does not wait. Otherwise the error is
// a *HeldError. Other errors are those of Lock.
func (l *Locks) TryLock(ctx context.Context, name string) (*Held, error) {
	return l.lock(ctx, name, 0)
}

// Lock takes the lock, and waits for it until ctx ends. What ctx does after that
// is nothing to the lock. If ctx ends first the lock is not taken, and the error
// matches ctx.Err(); if somebody was seen to hold it, it is a *HeldError.
//
// The name follows the rules of an idem.Key's ID; for one that breaks them the
// error is a *idem.KeyError. Other errors are the store's, with which the lock is
// not taken, or not for longer than the lease.
func (l *Locks) Lock(ctx context.Context, name string) (*Held, error) {
	return l.lock(ctx, name, idem.UntilDeadline)
}

// lock starts a goroutine that holds the lock as an attempt whose function lasts
// until Unlock. The guard does the rest: leases, waiting, taking over.
func (l *Locks) lock(ctx context.Context, name string, wait time.Duration) (*Held, error) {
	key := idem.Key{Scope: l.scope, ID: name}
	if err := key.Validate(); err != nil {
		return nil, err
	}
	// Only the waiting ends with ctx, so the attempt gets a context that is
	// detached as soon as it has the lock.
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, cancel)
	defer detach()

	h := newHeld(name)
	taken := make(chan struct{})
	go func() {
		defer cancel()
		res, err := idem.Do(waiting, l.guard, key, nil, func(ctx context.Context, a *idem.Attempt) (struct{}, error) {
			if detach() {
				h.fence = a.Version()
				close(taken)
				h.hold(ctx, l.guard.Store(), key)
			}
			return struct{}{}, ErrReleased
		}, l.options(wait)...)
		h.end(res.Record, err)
	}()
	select {
	case <-taken:
		return h, nil
	case <-h.ended:
		return nil, h.refusal(ctx)
	}
}

func (l *Locks) options(wait time.Duration) []idem.CallOption {
	nothing := func(error) idem.Outcome { return idem.OutcomeNothing }
	return []idem.CallOption{
		idem.WithKind(kind), idem.WithPolicy(l.policy()), idem.WithWait(wait), idem.WithClassifier(nothing),
	}
}
