package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/idembolt/idem"
)

// Insert adds a row. The id follows the rules of an idem.Key's ID. If there is a
// row of that id already, that one is returned, whatever its value, with Existing
// set and nothing written. If another row has the value of the unique column the
// error is a *DuplicateError.
//
// After another error of the store it may be open whether the row was added: a
// repeat finds out. Other errors: ErrInvalidValue, ErrForeign, *idem.KeyError.
func (t *Table[T]) Insert(ctx context.Context, id string, value T) (Row[T], error) {
	key := t.key(id)
	var row Row[T]
	next, err := t.encode(value)
	if err == nil {
		row, err = t.insert(ctx, key, next)
	}
	if err != nil {
		return Row[T]{}, fmt.Errorf("insert %q: %w", key.String(), err)
	}
	return row, nil
}

func (t *Table[T]) insert(ctx context.Context, key idem.Key, next *stored[T]) (Row[T], error) {
	// A repeat is answered before a transaction begins: it costs no more than Get.
	found, err := t.load(ctx, key)
	if err != nil || found.live() {
		return found.existing(), err
	}
	var row Row[T]
	err = t.atomically(ctx, func(t *Table[T]) error {
		return t.attempts(ctx, key, func(now *stored[T]) error {
			if now.live() {
				row = now.existing()
				return nil
			}
			var err error
			row, err = t.change(ctx, now, *next)
			return err
		})
	})
	return row, err
}

// existing is the row as the answer to a repeated insert.
func (s *stored[T]) existing() Row[T] {
	if s == nil {
		return Row[T]{}
	}
	row := s.row()
	row.Existing = true
	return row
}

// Update replaces the value of a row that has that version, and returns it with
// its new one. If the row is at another version the error is a *ConflictError, with
// the current row. Other errors: idem.ErrNotFound, *DuplicateError,
// ErrInvalidValue, ErrForeign, *idem.KeyError and the store's, after which Get
// tells whether the row was replaced.
func (t *Table[T]) Update(ctx context.Context, id string, version uint64, value T) (Row[T], error) {
	key := t.key(id)
	var row Row[T]
	next, err := t.encode(value)
	if err == nil {
		err = t.atomically(ctx, func(t *Table[T]) error {
			return t.attempts(ctx, key, func(now *stored[T]) error {
				err := now.mustBe(version)
				if err == nil {
					row, err = t.change(ctx, now, *next)
				}
				return err
			})
		})
	}
	if err != nil {
		return Row[T]{}, fmt.Errorf("update %q: %w", key.String(), err)
	}
	return row, nil
}

// Delete removes a row that has that version. If it is at another version the error
// is a *ConflictError, with the current row. Other errors: idem.ErrNotFound,
// ErrForeign, *idem.KeyError and the store's, after which Get tells whether the row
// is there.
func (t *Table[T]) Delete(ctx context.Context, id string, version uint64) error {
	key := t.key(id)
	err := t.atomically(ctx, func(t *Table[T]) error {
		return t.attempts(ctx, key, func(now *stored[T]) error {
			if err := now.mustBe(version); err != nil {
				return err
			}
			return t.remove(ctx, now)
		})
	})
	if err != nil {
		return fmt.Errorf("delete %q: %w", key.String(), err)
	}
	return nil
}

func (s *stored[T]) mustBe(version uint64) error {
	switch {
	case !s.live():
		return idem.ErrNotFound
	case s.body.Version != version:
		return &ConflictError[T]{Version: version, Row: s.row()}
	}
	return nil
}

// atomically runs fn on the table, in one transaction where the store has those.
// Without a unique column every call is one write, and needs none.
func (t *Table[T]) atomically(ctx context.Context, fn func(*Table[T]) error) error {
	if t.of == nil {
		return fn(t)
	}
	return t.transact(ctx, fn)
}

// transact runs fn, which may run more than once, in one transaction where the
// store has those.
func (t *Table[T]) transact(ctx context.Context, fn func(*Table[T]) error) error {
	s, ok := t.store.(*idem.BoltStore)
	if !ok {
		return fn(t)
	}
	return s.Update(ctx, func(tx *idem.Tx) error { return fn(t.On(tx.Records())) })
}

// attempts runs fn with the row as it is until nobody else is faster. Every failed
// attempt is one that somebody else was ahead of.
func (t *Table[T]) attempts(ctx context.Context, key idem.Key, fn func(now *stored[T]) error) error {
	for {
		now, err := t.settled(ctx, key)
		if err != nil {
			return err
		}
		if err := fn(now); !errors.Is(err, errRaced) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// change writes the next content of a row over what is there, or errRaced.
func (t *Table[T]) change(ctx context.Context, now *stored[T], next stored[T]) (Row[T], error) {
	at := idem.StoreNow(t.store)
	next.rec = now.rec
	if !now.live() {
		next.rec = idem.Record{Key: now.rec.Key, State: idem.Completed, Kind: kindRow, CreatedAt: at, StartedAt: at}
	}
	next.rec.UpdatedAt, next.rec.ExpiresAt = at, at.Add(t.retention)
	next.body.Version = now.body.Version + 1
	if !now.live() {
		// Not 1: who has read a row that was deleted since must not take this one for
		// it. Not the store's version, because a transaction does not know that yet.
		next.body.Version = 1 + rand.Uint64N(1<<52)
	}
	var err error
	if t.of == nil {
		err = t.finish(ctx, now.rec.Version, &next)
	} else {
		err = t.changeUnique(ctx, now, &next)
	}
	return next.row(), err
}

// finish writes the row.
func (t *Table[T]) finish(ctx context.Context, version uint64, next *stored[T]) error {
	rec, err := next.with(next.body)
	if err != nil {
		return err
	}
	next.rec, err = t.put(ctx, version, rec)
	return err
}

// remove removes the row, and then what says that its value is taken: see unique.go.
func (t *Table[T]) remove(ctx context.Context, now *stored[T]) error {
	var x index
	var err error
	if now.taken != "" {
		if x, err = t.loadIndex(ctx, now.taken); err != nil {
			return err
		}
	}
	if err := raced(t.store.Delete(ctx, now.rec.Key, now.rec.Version)); err != nil {
		return err
	}
	t.release(ctx, x, now.rec.Key.ID)
	return nil
}
