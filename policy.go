package idem

import (
	"context"
	"fmt"
	"time"
)

const (
	// MinLease is the shortest lease a policy may have. A shorter one would be
	// lost to an ordinary pause of the process.
	MinLease = time.Second
	// MaxRetention is the longest retention a policy may have: five years. What
	// must be kept longer is business data, not a deduplication record.
	MaxRetention = 5 * 366 * 24 * time.Hour
)

// Policy says how one kind of operation is made idempotent. It is a value: copy
// a preset and change what differs. The zero value is not valid.
type Policy struct {
	// Retention is how long a finished record answers repeats, from the time it
	// finished. More than RetryWindow, at most MaxRetention. Required.
	Retention time.Duration
	// Lease is how long a running attempt is trusted without a sign of life. It
	// is renewed at a third of its length while the function runs, so it need
	// not cover the whole run. At least MinLease. Required.
	Lease time.Duration
	// RetryWindow is the longest time after which a client, a queue or a person
	// may still retry. 0 means that it is not known and is not checked.
	RetryWindow time.Duration
	// OnInterrupted decides what a call does that finds an interrupted attempt.
	// The zero value is FailClosed().
	OnInterrupted Recovery
	// Durability is what a call waits for before it returns the result of its
	// function. The zero value is Strict.
	Durability Durability
}

// Durability is what a call waits for when its function has returned. The claim
// is always durable before the function runs, so neither value lets work be done
// twice unnoticed.
type Durability int

const (
	// Strict: the result is durable before the call returns. A crash after that
	// loses nothing.
	Strict Durability = iota
	// Relaxed: the call returns while the result waits a few milliseconds for the
	// next sync, which it shares. That is about half the cost of a short function.
	// A crash in between shows as an interrupted attempt, never as one that has
	// not happened: OnInterrupted decides, although the caller has seen a result.
	// Until then repeats find the attempt in progress. Attempts that release the
	// key or end interrupted are recorded strictly.
	Relaxed
)

// Presets. They are values to copy, not to change.
var (
	// Payments keeps records for 72 hours, so that a weekend passes before a
	// retry would charge again, and fails closed.
	Payments = Policy{Retention: 72 * time.Hour, Lease: time.Minute, RetryWindow: 48 * time.Hour}
	// Orders keeps records for 24 hours and fails closed.
	Orders = Policy{Retention: 24 * time.Hour, Lease: time.Minute, RetryWindow: 12 * time.Hour}
	// API keeps records for 24 hours and fails closed. It is the default.
	API = Policy{Retention: 24 * time.Hour, Lease: 30 * time.Second, RetryWindow: 12 * time.Hour}
)

// Validate returns a *PolicyError that names the field and the rule it breaks,
// or nil.
func (p Policy) Validate() error {
	broken := func(field, format string, args ...any) error {
		return &PolicyError{Field: field, Rule: fmt.Sprintf(format, args...)}
	}
	switch {
	case p.Retention <= 0:
		return broken("Retention", "must be positive, it is %s", p.Retention)
	case p.Retention > MaxRetention:
		return broken("Retention", "must be at most %s, it is %s: records are never kept without end", MaxRetention, p.Retention)
	case p.RetryWindow < 0:
		return broken("RetryWindow", "must not be negative, it is %s", p.RetryWindow)
	case p.RetryWindow > 0 && p.Retention <= p.RetryWindow:
		return broken("Retention", "must be longer than RetryWindow (%s), it is %s: a late retry would run again", p.RetryWindow, p.Retention)
	case p.Lease < MinLease:
		return broken("Lease", "must be at least %s, it is %s", MinLease, p.Lease)
	case p.Durability != Strict && p.Durability != Relaxed:
		return broken("Durability", "must be Strict or Relaxed, it is %d", p.Durability)
	case p.Lease > MaxRetention:
		return broken("Lease", "must be at most %s, it is %s", MaxRetention, p.Lease)
	}
	return nil
}

// Recovery decides what happens to a key whose last attempt was interrupted.
// The zero value is FailClosed(). Make one with FailClosed, Rerun or Reconcile.
type Recovery struct {
	rerun     bool
	reconcile ReconcileFunc
}

// FailClosed makes calls return *InterruptedError until somebody settles the
// key. It is right when running twice is worse than not running.
func FailClosed() Recovery { return Recovery{} }

// Rerun makes the next call run the function again, as a new attempt. It is
// right when the function is safe to repeat.
func Rerun() Recovery { return Recovery{rerun: true} }

// Reconcile makes the next call ask the outside world what became of the
// attempt, and go on by the verdict.
func Reconcile(ask ReconcileFunc) Recovery { return Recovery{reconcile: ask} }

// FailsClosed reports whether calls refuse interrupted keys: true for the zero
// value and for FailClosed().
func (r Recovery) FailsClosed() bool { return !r.rerun && r.reconcile == nil }

// ReconcileFunc finds out whether the interrupted attempt of the record did its
// work, for instance by looking the charge up at the provider. It may be called
// by several callers at once for one key; only one verdict is stored. An error
// counts as StillUnknown and is passed to the caller inside *InterruptedError.
type ReconcileFunc func(ctx context.Context, rec Record) (Verdict, error)

// Verdict is the answer of a ReconcileFunc. The zero value is StillUnknown().
type Verdict struct {
	known bool
	done  bool
	value []byte
	err   error // why the value could not be encoded
}

// Done says that the work was done, with the value that repeats will get. It is
// stored as Do stores a result, so T must be the type that Do returns.
func Done[T any](value T) Verdict {
	encoded, err := encodeValue(value)
	return Verdict{known: true, done: true, value: encoded, err: err}
}

// NotDone says that nothing happened: the function runs again.
func NotDone() Verdict { return Verdict{known: true} }

// StillUnknown says that the outcome cannot be known now: the caller gets
// *InterruptedError and the key stays as it is.
func StillUnknown() Verdict { return Verdict{} }
