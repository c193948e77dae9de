package table

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/idembolt/idem"
)

// How a second unique column is kept, on a store that writes one record at a time.
//
// Every value of the column that a row has is in an index record, which names the
// row. The row has the last word: an index record whose row is not there, or has
// another value, means nothing.
//
// At all times, for every row with a value, the index record of the value names
// the row. Since an index record names one row, no two rows have the same value.
// To keep it so a row takes a value in three writes:
//
//  1. the row's record gets a new random token, and so is pending. A new row is not
//     there yet; one that is updated still has its old content;
//  2. the index record of the new value is made, or taken over if it means nothing:
//     it names the row and the token;
//  3. the row's record gets the new content and loses the token, if nobody has
//     written it since the first step. That is when the change happens.
//
// After that the index record of the old value, which means nothing now, is
// removed; so it is after the row of a deletion.
//
// Why the third step keeps the promise: an index record may be taken over when its
// row neither has the value nor is pending with its token. While the row is pending
// nobody takes the index record over. Who wants the value must end the change first,
// by writing the row's record back; then the third step fails, and starts over. Once
// the token is gone it never comes back, so whoever has seen that the index record
// means nothing can rely on it until that is written again.
//
// A crash leaves one of: a pending row, which others end; an index record that means
// nothing, which others take over; or a finished change. A pending row that does not
// move is taken for one whose caller is dead after a while. If that was wrong the
// caller starts over: time decides how long others wait, never who is right.
//
// In a transaction all of this is one commit, of the final records alone.
const (
	patience   = time.Second // with a pending row that does not move
	firstPause = time.Millisecond
	longPause  = 50 * time.Millisecond
	// pendingFor is how long a row that is being inserted is kept.
	pendingFor = time.Hour
)

// changeUnique writes the row in a table with a unique column.
func (t *Table[T]) changeUnique(ctx context.Context, now, next *stored[T]) error {
	var old index
	if now.taken != "" {
		var err error
		if old, err = t.loadIndex(ctx, now.taken); err != nil {
			return err
		}
	}
	if now.taken == next.taken && old.body.Row == now.rec.Key.ID {
		if err := t.prolong(ctx, old, next.rec.ExpiresAt); err != nil {
			return err
		}
		return t.finish(ctx, now.rec.Version, next)
	}
	if next.taken == "" {
		if err := t.finish(ctx, now.rec.Version, next); err != nil {
			return err
		}
	} else if err := t.take(ctx, now, next); err != nil {
		return err
	}
	if now.taken != next.taken {
		t.release(ctx, old, now.rec.Key.ID)
	}
	return nil
}

// prolong makes an index record live as long as its row.
func (t *Table[T]) prolong(ctx context.Context, x index, until time.Time) error {
	if !x.rec.ExpiresAt.Before(until) {
		return nil
	}
	x.rec.UpdatedAt, x.rec.ExpiresAt = idem.StoreNow(t.store), until
	_, err := t.put(ctx, x.rec.Version, x.rec)
	return err
}

// take makes the three writes.
func (t *Table[T]) take(ctx context.Context, now, next *stored[T]) error {
	pending, err := t.begin(ctx, now, next)
	if err != nil {
		return err
	}
	err = t.claim(ctx, next, pending.body.Pending)
	if err == nil {
		err = t.finish(ctx, pending.rec.Version, next)
	}
	if err == nil || errors.Is(err, errRaced) {
		return err
	}
	// Others should not have to find out that nothing comes of it, so this is done
	// also for a caller who has gone away. A duplicate is one only if the row was
	// pending all the while: else somebody may have inserted it, and then this
	// would have been a repeat.
	undone := t.undo(context.WithoutCancel(ctx), pending)
	if errors.Is(err, ErrDuplicate) && undone != nil {
		return undone
	}
	return err
}

// begin is the first write.
func (t *Table[T]) begin(ctx context.Context, now, next *stored[T]) (*stored[T], error) {
	pending := *now
	if !now.live() {
		pending.rec = next.rec
		pending.rec.ExpiresAt = next.rec.UpdatedAt.Add(min(pendingFor, t.retention))
	}
	pending.body.Pending = newToken()
	rec, err := pending.with(pending.body)
	if err != nil {
		return nil, err
	}
	pending.rec, err = t.put(ctx, now.rec.Version, rec)
	return &pending, err
}

// undo writes a pending row back.
func (t *Table[T]) undo(ctx context.Context, pending *stored[T]) error {
	if !pending.live() {
		return raced(t.store.Delete(ctx, pending.rec.Key, pending.rec.Version))
	}
	body := pending.body
	body.Pending = ""
	rec, err := pending.with(body)
	if err == nil {
		_, err = t.put(ctx, pending.rec.Version, rec)
	}
	return err
}

// claim is the second write. The error is a *DuplicateError if another row has the
// value.
func (t *Table[T]) claim(ctx context.Context, next *stored[T], token string) error {
	rec, err := t.claimRecord(next, token)
	if err != nil {
		return err
	}
	for {
		found, err := t.store.Create(ctx, rec)
		if !errors.Is(err, idem.ErrConflict) {
			return err
		}
		x, err := readIndex(found)
		if err != nil {
			return err
		}
		if err := t.free(ctx, x, next, token); err != nil {
			return err
		}
		if _, err = t.put(ctx, x.rec.Version, rec); !errors.Is(err, errRaced) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (t *Table[T]) claimRecord(next *stored[T], token string) (idem.Record, error) {
	data, err := json.Marshal(indexValue{Row: next.rec.Key.ID, Token: token})
	return idem.Record{
		Key: t.indexKey(next.taken), State: idem.Completed, Kind: kindIndex, Value: data,
		CreatedAt: next.rec.UpdatedAt, StartedAt: next.rec.UpdatedAt, UpdatedAt: next.rec.UpdatedAt, ExpiresAt: next.rec.ExpiresAt,
	}, err
}

// free returns nil when an index record means nothing to others, which it may wait
// for. The token is that of the caller's change.
func (t *Table[T]) free(ctx context.Context, x index, next *stored[T], token string) error {
	key := t.key(x.body.Row)
	for {
		other, err := t.load(ctx, key)
		switch {
		case err != nil:
			return err
		case key == next.rec.Key && other.body.Pending != token:
			return errRaced // else it could take the record from the change that has ended its own
		case key == next.rec.Key:
			return nil // left by an earlier change of this row
		case other.live() && other.taken == next.taken:
			return &DuplicateError[T]{Column: t.column, Row: other.row()}
		case other.body.Pending != x.body.Token:
			return nil
		}
		if _, err := t.settle(ctx, other); err != nil {
			return err
		}
	}
}

// settled returns a row that is not pending.
func (t *Table[T]) settled(ctx context.Context, key idem.Key) (*stored[T], error) {
	now, err := t.load(ctx, key)
	for err == nil && now.body.Pending != "" {
		now, err = t.settle(ctx, now)
	}
	return now, err
}

// settle waits until a pending row is not so any more, or for as long as patience
// lasts and then ends the change. It returns the row as it is then.
func (t *Table[T]) settle(ctx context.Context, pending *stored[T]) (*stored[T], error) {
	token := pending.body.Pending
	// Two who wait for each other's rows should not lose patience together.
	limit := patience + rand.N(patience)
	for waited, pause := time.Duration(0), firstPause; waited < limit; pause = min(2*pause, longPause) {
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		waited += pause
		now, err := t.load(ctx, pending.rec.Key)
		if err != nil || now.body.Pending != token {
			return now, err
		}
	}
	if err := t.undo(ctx, pending); err != nil && !errors.Is(err, errRaced) {
		return nil, err
	}
	return t.load(ctx, pending.rec.Key)
}

// release removes the index record of a value that the row had, as it was before the
// row was written. It can not fail in a way that matters: the row was written, and
// what stays behind means nothing.
func (t *Table[T]) release(ctx context.Context, x index, id string) {
	if x.body.Row == id && x.rec.Version != 0 {
		_ = t.store.Delete(context.WithoutCancel(ctx), x.rec.Key, x.rec.Version)
	}
}

// holder returns the row that has the value, or idem.ErrNotFound.
func (t *Table[T]) holder(ctx context.Context, value string) (Row[T], error) {
	x, err := t.loadIndex(ctx, value)
	for err == nil && x.body.Row != "" {
		var row *stored[T]
		if row, err = t.load(ctx, t.key(x.body.Row)); err != nil {
			return Row[T]{}, err
		}
		if row.live() && row.taken == value {
			return row.row(), nil
		}
		// Between the two reads a transaction may have moved the value to another
		// row. If the index record is as it was, none had it when the row was read.
		before := x.rec.Version
		if x, err = t.loadIndex(ctx, value); err == nil && x.rec.Version == before {
			break
		}
	}
	if err == nil {
		err = idem.ErrNotFound
	}
	return Row[T]{}, err
}

// sleep waits, or returns the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
