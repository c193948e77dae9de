package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

const intentKind = "intent"

// open returns the record of an open intent. Creating comes first: it finds what
// is there as well, in one opening of a TransientStore's file, and writes nothing
// then.
func (s *Intents) open(ctx context.Context, key idem.Key) (idem.Record, error) {
	rec, err := s.store.Create(ctx, s.fresh(key))
	for errors.Is(err, idem.ErrConflict) {
		if rec.Version == 0 { // it was done while its retention was being extended
			rec, err = s.store.Create(ctx, s.fresh(key))
			continue
		}
		if err := openIntent(&rec); err != nil {
			return idem.Record{}, err
		}
		now := idem.StoreNow(s.store)
		if rec.ExpiresAt.Sub(now) >= s.retention/2 {
			return rec, nil
		}
		rec, err = s.store.Swap(ctx, rec.Version, s.kept(rec, now))
	}
	return rec, err
}

// openIntent returns an error unless the record holds the key of an open intent.
func openIntent(rec *idem.Record) error {
	if rec.Kind != intentKind || rec.State != idem.Processing || validateKey(string(rec.Value)) != nil {
		return fmt.Errorf("%q is not an open intent but a record of kind %q that is %s", rec.Key.String(), rec.Kind, rec.State)
	}
	return nil
}

func (s *Intents) fresh(key idem.Key) idem.Record {
	now := idem.StoreNow(s.store)
	return s.kept(idem.Record{
		Key: key, State: idem.Processing, Kind: intentKind, Attempt: 1,
		CreatedAt: now, StartedAt: now, Value: []byte(randomKey()),
	}, now)
}

// kept is the record with its retention beginning now.
func (s *Intents) kept(rec idem.Record, now time.Time) idem.Record {
	rec.UpdatedAt, rec.ExpiresAt = now, now.Add(s.retention)
	rec.LeaseUntil = rec.ExpiresAt
	return rec
}
