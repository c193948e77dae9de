package main

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
)

// badgerStore is Badger with SyncWrites and otherwise its defaults.
type badgerStore struct{ db *badger.DB }

func (s *badgerStore) Setup(t target) (err error) {
	s.db, err = badger.Open(badger.DefaultOptions(t.Dir).WithSyncWrites(false).WithLogger(nil))
	if err != nil {
		return err
	}
	value := make([]byte, resultBytes)
	err = load(t.Records, func(keys []string) error {
		b := s.db.NewWriteBatch()
		defer b.Cancel()
		for _, key := range keys {
			if err := b.Set([]byte(key), value); err != nil {
				return err
			}
		}
		return b.Flush()
	})
	if err = errors.Join(err, s.db.Close()); err != nil {
		return err
	}
	s.db, err = badger.Open(badger.DefaultOptions(t.Dir).WithSyncWrites(true).WithLogger(nil))
	return err
}

func (s *badgerStore) Do(key string, claim, result []byte) error {
	k := []byte(key)
	err := s.db.Update(func(tx *badger.Txn) error {
		_, err := tx.Get(k)
		if err == nil {
			return errTaken
		}
		if !errors.Is(err, badger.ErrKeyNotFound) {
			return err
		}
		return tx.Set(k, claim)
	})
	if err != nil {
		return err
	}
	return s.db.Update(func(tx *badger.Txn) error { return tx.Set(k, result) })
}

func (s *badgerStore) Read(key string) (result []byte, err error) {
	err = s.db.View(func(tx *badger.Txn) error {
		item, err := tx.Get([]byte(key))
		if err != nil {
			return err
		}
		result, err = item.ValueCopy(nil)
		return err
	})
	return result, err
}

func (s *badgerStore) Close() error { return s.db.Close() }
