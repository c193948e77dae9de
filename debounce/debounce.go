package debounce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

const (
	// MinInterval and MaxInterval bound the interval of a Debouncer.
	MinInterval = time.Millisecond
	MaxInterval = 24 * time.Hour

	kind = "debounce"
)

// Debouncer lets a name through once per interval. It is safe for concurrent use,
// also by several processes if the store is.
type Debouncer struct {
	store idem.Store
	scope string
	every time.Duration
}

// Decision is the answer of Allow.
type Decision struct {
	// Allowed is true if nobody was let through within the interval. The caller
	// is the one who is now.
	Allowed bool
	// RetryAfter is how long the name stays refused; 0 if Allowed.
	RetryAfter time.Duration
}

// New returns a debouncer for a scope, which names the action and, where there are
// tenants, the tenant. It must not be a scope that anything else on the store
// uses. The interval, every, is MinInterval to MaxInterval.
//
// Errors: *idem.KeyError for a scope that breaks a rule of idem.Key,
// *idem.PolicyError for an interval out of range.
func New(store idem.Store, scope string, every time.Duration) (*Debouncer, error) {
	if store == nil {
		return nil, errors.New("debounce: New needs a store")
	}
	if err := (idem.Key{Scope: scope, ID: "any"}).Validate(); err != nil {
		return nil, err
	}
	if every < MinInterval || every > MaxInterval {
		return nil, &idem.PolicyError{Field: "Every", Rule: fmt.Sprintf("must be %s to %s, it is %s", MinInterval, MaxInterval, every)}
	}
	return &Debouncer{store: store, scope: scope, every: every}, nil
}

// Allow lets the name through unless it was within the interval. The interval
// that counts is the one it was let through with: a Debouncer with another one
// changes it for the next time only.
//
// The name follows the rules of an idem.Key's ID; for one that breaks them the
// error is a *idem.KeyError. Other errors are the store's: the decision is the
// zero one then, and the name may have been let through all the same.
func (d *Debouncer) Allow(ctx context.Context, name string) (Decision, error) {
	key := idem.Key{Scope: d.scope, ID: name}
	if err := key.Validate(); err != nil {
		return Decision{}, err
	}
	decision, err := d.allow(ctx, key)
	if err != nil {
		return Decision{}, fmt.Errorf("debounce %q: %w", key.String(), err)
	}
	return decision, nil
}

// allow creates first, which finds what is there as well and writes nothing then.
func (d *Debouncer) allow(ctx context.Context, key idem.Key) (Decision, error) {
	rec, err := d.store.Create(ctx, d.record(key))
	for errors.Is(err, idem.ErrConflict) {
		if rec.Version == 0 {
			rec, err = d.store.Create(ctx, d.record(key))
			continue
		}
		if rec.Kind != kind {
			return Decision{}, fmt.Errorf("the key holds a record of kind %q", rec.Kind)
		}
		if left := rec.ExpiresAt.Sub(idem.StoreNow(d.store)); left > 0 {
			return Decision{RetryAfter: left}, nil
		}
		// A store may keep a record beyond its time, see idem.BoltConfig.Grace.
		rec, err = d.store.Swap(ctx, rec.Version, d.record(key))
	}
	return Decision{Allowed: err == nil}, err
}

func (d *Debouncer) record(key idem.Key) idem.Record {
	now := idem.StoreNow(d.store)
	return idem.Record{
		Key: key, State: idem.Completed, Kind: kind, Attempt: 1,
		CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(d.every),
	}
}
