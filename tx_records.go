package idem

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// errInTx is the error for what cannot be done within a transaction.
var errInTx = errors.New("not possible in a transaction")

// txRecords are the records that a transaction has read or written.
type txRecords map[Key]*txRecord

type txRecord struct {
	base    uint64 // version that was read; 0 if there was none
	current Record // as the transaction sees it; its Version is 0 if there is none
	written bool
}

// Records returns the store's records as the transaction sees them. What is
// written through it becomes durable with the transaction, so everything that
// works on a Store takes part in it. The versions it gives out count only within
// the transaction. Scan and Expire are not possible, and the key of the DoTx
// itself is refused.
func (tx *Tx) Records() Store { return txStore{tx} }

var (
	_ Store        = txStore{}
	_ Clock        = txStore{}
	_ SecretKeeper = txStore{}
	_ Liveness     = txStore{}
)

type txStore struct{ tx *Tx }

func (s txStore) Now() time.Time { return s.tx.store.Now() }

func (s txStore) Secret() []byte { return s.tx.store.Secret() }

func (s txStore) Owner() string { return s.tx.store.Owner() }

func (s txStore) Alive(owner string) bool { return s.tx.store.Alive(owner) }

// load returns what the transaction sees of a key. The caller holds mu.
func (s txStore) load(ctx context.Context, key Key, write bool) (*txRecord, error) {
	if err := s.tx.use(write); err != nil {
		return nil, err
	}
	if s.tx.view != nil {
		return nil, fmt.Errorf("records of a View: %w: ask the store", errInTx)
	}
	if s.tx.attempt != nil && s.tx.attempt.Key() == key {
		return nil, s.tx.fail(fmt.Errorf("%w: %q is the transaction's own key", ErrInvalidInput, key.String()))
	}
	if t := s.tx.records[key]; t != nil {
		return t, nil
	}
	rec, err := s.tx.store.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, s.tx.fail(err)
	}
	t := &txRecord{base: rec.Version, current: rec}
	s.tx.records[key] = t
	return t, nil
}

func (s txStore) Get(ctx context.Context, key Key) (Record, error) {
	s.tx.mu.Lock()
	defer s.tx.mu.Unlock()
	t, err := s.load(ctx, key, false)
	if err == nil && t.current.Version == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Record{}, err
	}
	return t.current.clone(), nil
}

func (s txStore) Create(ctx context.Context, rec Record) (Record, error) {
	return s.put(ctx, rec, 0)
}

func (s txStore) Swap(ctx context.Context, version uint64, rec Record) (Record, error) {
	if version == 0 {
		return Record{}, ErrConflict
	}
	return s.put(ctx, rec, version)
}

func (s txStore) put(ctx context.Context, rec Record, version uint64) (Record, error) {
	if err := rec.Validate(); err != nil {
		return Record{}, err
	}
	s.tx.mu.Lock()
	defer s.tx.mu.Unlock()
	t, err := s.load(ctx, rec.Key, true)
	if err != nil {
		return Record{}, err
	}
	if t.current.Version != version || version == heldVersion {
		return t.current.clone(), ErrConflict
	}
	if err := s.tx.grow(len(rec.Value) + stepBytes(rec.Steps)); err != nil {
		return Record{}, err
	}
	rec = rec.clone()
	rec.Version = t.base + 1 // not 0, and not what it was
	if t.current.Version > t.base {
		rec.Version = t.current.Version + 1
	}
	t.current, t.written = rec, true
	return rec.clone(), nil
}

func (s txStore) Delete(ctx context.Context, key Key, version uint64) error {
	if err := key.Validate(); err != nil {
		return err
	}
	s.tx.mu.Lock()
	defer s.tx.mu.Unlock()
	t, err := s.load(ctx, key, true)
	switch {
	case err != nil:
		return err
	case t.current.Version == 0:
		return ErrNotFound
	case t.current.Version != version, version == heldVersion:
		return ErrConflict
	}
	t.current, t.written = Record{}, true
	return nil
}

func (s txStore) Scan(context.Context, Query) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) { yield(Record{}, fmt.Errorf("scan: %w", errInTx)) }
}

func (s txStore) Expire(context.Context, int) (int, error) {
	return 0, fmt.Errorf("expire: %w", errInTx)
}
