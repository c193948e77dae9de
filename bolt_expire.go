package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Expire implements Store. It also checks that the file at the path is still the
// one that is open, and poisons the store if it is not.
func (s *BoltStore) Expire(ctx context.Context, limit int) (removed int, err error) {
	for chunk := limit; removed < limit; {
		chunk = min(chunk, limit-removed)
		n, err := s.expire(ctx, chunk)
		removed += n
		switch {
		case errors.Is(err, ErrFull) && chunk > 1:
			chunk /= 2 // removing takes free pages before it gives any: on a full disk begin small
		case err != nil || n < chunk:
			return removed, err
		}
	}
	return removed, nil
}

// expire removes up to limit records. It looks before it writes, so that an idle
// round costs nothing, and looks again while it writes.
func (s *BoltStore) expire(ctx context.Context, limit int) (int, error) {
	keys, err := s.due(ctx, limit)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	removed, keys, err := s.removeExpired(ctx, keys)
	if err != nil || len(keys) == 0 {
		return removed, err
	}
	committed := 0
	_, err = s.write(ctx, &writeOp{plan: func(p *planner) (Record, error) {
		committed = 0 // the plan may run again, alone
		for _, key := range keys {
			st, err := p.lookup(key)
			if err != nil {
				return Record{}, err
			}
			if st.rec.Version != 0 && s.clock.expired(&st.rec, p.now) {
				p.remove(st)
				committed++
			}
		}
		return Record{}, nil
	}})
	if err != nil {
		return removed, err
	}
	return removed + committed, nil
}

// removeExpired has the engine remove what it can beside the commits, and
// returns the keys that need one.
func (s *BoltStore) removeExpired(ctx context.Context, keys []Key) (int, []Key, error) {
	if err := s.enter(ctx); err != nil {
		return 0, nil, err
	}
	defer s.mu.RUnlock()
	if s.writer == nil {
		return 0, nil, ErrReadOnly
	}
	for _, key := range keys {
		s.cache.write(key)
	}
	removed, rest, err := s.engine.removeExpired(keys, func(rec *Record) bool { return s.clock.expired(rec, s.clock.Now()) })
	for _, key := range keys {
		s.cache.wrote(key, nil)
	}
	for _, key := range removed {
		s.ledger.forget(key)
		s.watch.notify(key)
	}
	if errors.Is(err, errNoSpace) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return len(removed), rest, s.readError(err)
}

// due returns the keys of up to limit expired records, oldest first. Records
// that cannot be read are passed over; the error is about one of them, and only
// returned if nothing else is due: it must not keep others from being removed.
func (s *BoltStore) due(ctx context.Context, limit int) ([]Key, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	if err := s.checkIdentity(); err != nil {
		return nil, s.poison(err)
	}
	var keys []Key
	var bad error
	for _, stretch := range s.clock.removable(s.clock.Now()) {
		for entry, err := range s.dueEntries(stretch) {
			if err != nil {
				return nil, err
			}
			key, expired, err := s.expiredKey(entry[8:])
			switch {
			case isFault(err):
				return nil, err
			case err != nil:
				bad = err
			case expired:
				keys = append(keys, key)
			}
			if len(keys) == limit {
				return keys, nil
			}
		}
	}
	if len(keys) > 0 {
		return keys, nil
	}
	return nil, bad
}

// dueEntries yields the entries of the expiry index within the stretch, oldest
// first, reading a page of them at a time.
func (s *BoltStore) dueEntries(stretch span) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for after := []byte(nil); ; {
			page, err := s.engine.due(stretch, after, scanPageSize)
			if err != nil {
				yield(nil, s.readError(err))
				return
			}
			for _, entry := range page {
				if !yield(entry, nil) {
					return
				}
			}
			if len(page) < scanPageSize {
				return
			}
			after = slices.Clone(page[len(page)-1])
		}
	}
}

// expiredKey reads the record that an entry of the index points at.
func (s *BoltStore) expiredKey(text []byte) (Key, bool, error) {
	key, err := ParseKey(string(text))
	if err != nil {
		return Key{}, false, damaged(text, "the expiry index names it, but it is not a key")
	}
	var expired bool
	err = s.engine.get(text, func(enc []byte) error {
		if enc == nil {
			return nil
		}
		rec, err := decodeRecord(text, enc, false)
		expired = err == nil && s.clock.expired(&rec, s.clock.Now())
		return err
	})
	return key, expired, s.readError(err)
}
