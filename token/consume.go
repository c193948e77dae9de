package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

// Consume uses the token up. Of all calls for one token exactly one gets nil; for
// the others the error matches ErrUsed, ErrExpired, ErrSubject or ErrUnknown. The
// subject is the one that the token was issued to.
//
// Other errors are *idem.KeyError for a bad subject, and the store's, after which
// the token may be used although nobody got nil: issue another one. If ctx ends
// before the store has begun to write, the token is not used.
func (t *Tokens) Consume(ctx context.Context, value, subject string) error {
	if err := t.checkSubject(subject); err != nil {
		return err
	}
	key, ok := t.keyOf(value)
	if !ok {
		return fmt.Errorf("consume token: %w", ErrUnknown)
	}
	if err := t.consume(ctx, key, subjectMark(value, subject)); err != nil {
		return fmt.Errorf("consume token %q: %w", key.String(), err)
	}
	return nil
}

func (t *Tokens) consume(ctx context.Context, key idem.Key, subject string) error {
	consumer := randomText()
	rec, err := t.store.Get(ctx, key)
	for err == nil {
		used, refusal := t.use(rec, subject, consumer)
		if refusal != nil {
			return refusal
		}
		rec, err = t.store.Swap(ctx, rec.Version, used)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, idem.ErrConflict) && rec.Version != 0:
			err = nil // somebody was faster: see who
		case errors.Is(err, idem.ErrConflict):
			err = idem.ErrNotFound
		case t.isConsumer(ctx, key, consumer):
			return nil
		}
	}
	if errors.Is(err, idem.ErrNotFound) {
		return ErrUnknown
	}
	return err
}

// use returns the record of the token after it was consumed, or why it cannot be.
// The subject comes first: others learn nothing else about a token.
func (t *Tokens) use(rec idem.Record, subject, consumer string) (idem.Record, error) {
	c, err := read(&rec)
	now := idem.StoreNow(t.store)
	switch {
	case err != nil:
		return idem.Record{}, err
	case c.Subject != subject:
		return idem.Record{}, ErrSubject
	case !c.Used.IsZero():
		return idem.Record{}, &UsedError{At: c.Used}
	case !now.Before(c.Expires):
		return idem.Record{}, ErrExpired
	}
	return usedRecord(rec, c, now, consumer)
}

// isConsumer looks, after a write with an open outcome, whether it was made. A
// caller who is told of an error although it has consumed the token would be told
// next that somebody else did.
func (t *Tokens) isConsumer(ctx context.Context, key idem.Key, consumer string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	rec, err := t.store.Get(ctx, key)
	return err == nil && rec.Owner == consumer
}

// State says what can be done with a token. The zero value is not a valid state.
type State uint8

const (
	// Open: it can be consumed.
	Open State = iota + 1
	// Used: it was consumed.
	Used
	// Expired: it was not consumed in time.
	Expired
)

// String returns the lower-case name, or "state(n)" for a value that is not a
// state.
func (s State) String() string {
	switch s {
	case Open:
		return "open"
	case Used:
		return "used"
	case Expired:
		return "expired"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Status describes a token.
type Status struct {
	State     State
	IssuedAt  time.Time
	ExpiresAt time.Time
	UsedAt    time.Time // zero unless it was used
	// Bound is true if it was issued to a subject other than "".
	Bound bool
}

// Inspect describes a token and consumes nothing. It does not ask for the subject,
// so its answer is not for whoever sent the token. It returns ErrUnknown as
// Consume does, and the store's errors.
func (t *Tokens) Inspect(ctx context.Context, value string) (Status, error) {
	key, ok := t.keyOf(value)
	if !ok {
		return Status{}, fmt.Errorf("inspect token: %w", ErrUnknown)
	}
	rec, err := t.store.Get(ctx, key)
	if errors.Is(err, idem.ErrNotFound) {
		err = ErrUnknown
	}
	var c content
	if err == nil {
		c, err = read(&rec)
	}
	if err != nil {
		return Status{}, fmt.Errorf("inspect token %q: %w", key.String(), err)
	}
	s := Status{State: Open, IssuedAt: rec.CreatedAt, ExpiresAt: c.Expires, UsedAt: c.Used, Bound: c.Subject != ""}
	switch {
	case !c.Used.IsZero():
		s.State = Used
	case !idem.StoreNow(t.store).Before(c.Expires):
		s.State = Expired
	}
	return s, nil
}
