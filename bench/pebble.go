package main

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleStore is CockroachDB's LSM tree with its defaults. It has no
// transactions: a lock by key keeps two callers from claiming the same one.
type pebbleStore struct {
	db    *pebble.DB
	locks *keyLocks
}

func (s *pebbleStore) Setup(t target) (err error) {
	s.locks = newKeyLocks()
	if s.db, err = pebble.Open(t.Dir, &pebble.Options{Logger: quiet{}}); err != nil {
		return err
	}
	value := make([]byte, resultBytes)
	err = load(t.Records, func(keys []string) error {
		b := s.db.NewBatch()
		for _, key := range keys {
			if err := b.Set([]byte(key), value, nil); err != nil {
				return err
			}
		}
		return b.Commit(pebble.NoSync)
	})
	if err != nil {
		return err
	}
	return s.db.Flush()
}

func (s *pebbleStore) Do(key string, claim, result []byte) error {
	if err := s.claim(key, claim); err != nil {
		return err
	}
	return s.db.Set([]byte(key), result, pebble.Sync)
}

func (s *pebbleStore) claim(key string, claim []byte) error {
	lock := s.locks.of(key)
	lock.Lock()
	defer lock.Unlock()
	_, closer, err := s.db.Get([]byte(key))
	if err == nil {
		return errors.Join(errTaken, closer.Close())
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return err
	}
	return s.db.Set([]byte(key), claim, pebble.Sync)
}

func (s *pebbleStore) Read(key string) ([]byte, error) {
	value, closer, err := s.db.Get([]byte(key))
	if err != nil {
		return nil, err
	}
	return bytes.Clone(value), closer.Close()
}

func (s *pebbleStore) Close() error { return s.db.Close() }

// quiet drops what Pebble logs about its routine.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	pebble.DefaultLogger.Fatalf(format, args...)
}
