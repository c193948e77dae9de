package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

// DefaultIntentRetention is the retention of an intent unless WithIntentRetention
// changes it. Half of it is longer than servers keep keys: 24 hours to 30 days
// are usual.
const DefaultIntentRetention = 90 * 24 * time.Hour

// Intents keeps the keys of intents in a store until they are done, so that a
// command which was killed and is run again sends the key it sent before. It
// works on every idem.Store. On a TransientStore many processes may share a file
// while they wait for answers; a MemoryStore forgets the keys with the process.
//
// An open intent is a record of kind "intent" and state Processing, without an
// owner and with its whole retention as its lease, so that removing finished
// records does not touch it.
//
// It is safe for concurrent use, also by several processes if the store is.
type Intents struct {
	store     idem.Store
	scope     string
	retention time.Duration
}

// IntentOption configures Intents.
type IntentOption func(*Intents)

// WithIntentRetention changes how long an intent that is never done stays open:
// between d/2 and d after its last Begin. After that Begin makes a new key, so it
// must be longer than the pause between two tries together with the time that
// the server remembers keys. The default is DefaultIntentRetention.
func WithIntentRetention(d time.Duration) IntentOption {
	return func(s *Intents) { s.retention = d }
}

// NewIntents returns the intents of a scope, which names the operation or the
// system that is called and, where there are tenants, the tenant. It must not be
// one that the store's guards use. Errors: *idem.KeyError for a scope that breaks
// a rule of idem.Key, *idem.PolicyError for a retention that a policy could not
// have.
func NewIntents(store idem.Store, scope string, opts ...IntentOption) (*Intents, error) {
	s := &Intents{store: store, scope: scope, retention: DefaultIntentRetention}
	for _, o := range opts {
		o(s)
	}
	if err := (idem.Key{Scope: scope, ID: "any"}).Validate(); err != nil {
		return nil, err
	}
	if err := (idem.Policy{Retention: s.retention, Lease: idem.MinLease}).Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

// Intent is something that is to be done once by one request, however often that
// is sent. The zero value is not begun.
type Intent struct {
	// Name tells intents of one scope apart.
	Name string
	// Key is the idempotency key, a UUID.
	Key string

	intents *Intents
}

// Begin returns the open intent of that name, or opens one with a new random key.
// The key is stored durably before Begin returns. Whoever begins an open intent
// gets its key, in whatever process: none is handed out beside it.
//
// The name follows the rules of an idem.Key's ID. It should say what is to be
// done, "invoice-2026-11-0042", not how: after a crash between the server's
// answer and Done, the next request under an intent called "nightly" would be
// answered with the result of the last one.
//
// It returns a *idem.KeyError for a bad name, an error if the store holds
// something else under it, and the store's errors, after which another Begin is
// safe.
func (s *Intents) Begin(ctx context.Context, name string) (Intent, error) {
	rec, err := s.open(ctx, idem.Key{Scope: s.scope, ID: name})
	if err != nil {
		return Intent{}, fmt.Errorf("begin intent %q: %w", name, err)
	}
	return Intent{Name: name, Key: string(rec.Value), intents: s}, nil
}

// Done says that the request was answered and the answer dealt with: the next
// Begin of the name opens a new intent. Call it after a failure too if that is
// final, and not if it is to be tried again. It is safe to call more than once,
// and does nothing to a newer intent of the name.
//
// If it returns an error the intent may still be open, as after a crash: call it
// again, or the next Begin finds the old key.
func (in Intent) Done(ctx context.Context) error {
	if in.intents == nil {
		return fmt.Errorf("end intent %q: it was not begun", in.Name)
	}
	store, key := in.intents.store, idem.Key{Scope: in.intents.scope, ID: in.Name}
	for {
		rec, err := store.Get(ctx, key)
		if err == nil {
			if string(rec.Value) != in.Key {
				return nil // done, and begun anew
			}
			err = store.Delete(ctx, key, rec.Version)
		}
		switch {
		case err == nil, errors.Is(err, idem.ErrNotFound):
			return nil
		case !errors.Is(err, idem.ErrConflict): // else its retention was extended
			return fmt.Errorf("end intent %q: %w", in.Name, err)
		}
	}
}

// ChildKey derives the key of one of several requests of an intent, for WithKey.
// It depends on the intent's key and the name only, so it is as stable as that.
func (in Intent) ChildKey(name string) string {
	if in.Key == "" {
		return "" // not one that all intents without a key share: RoundTrip refuses it
	}
	return derivedKey(in.Key, name)
}
