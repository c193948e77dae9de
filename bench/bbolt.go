package main

import (
	"bytes"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// bboltStore is idem's storage engine used plainly, a synced transaction for
// each write, or with Batch, which gathers concurrent ones for up to 10 ms.
type bboltStore struct {
	batch bool
	db    *bolt.DB
	write func(func(*bolt.Tx) error) error
}

func (s *bboltStore) bucket() []byte { return []byte("records") }

func (s *bboltStore) Setup(t target) (err error) {
	options := *bolt.DefaultOptions
	options.FreelistType = bolt.FreelistMapType // the default gets slow with many free pages
	if s.db, err = bolt.Open(filepath.Join(t.Dir, "bbolt.db"), 0o600, &options); err != nil {
		return err
	}
	s.write = s.db.Update
	if s.batch {
		s.write = s.db.Batch
	}
	s.db.NoSync = true // while nothing is measured
	defer func() { s.db.NoSync = false }()
	value := make([]byte, resultBytes)
	err = load(t.Records, func(keys []string) error {
		return s.db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(s.bucket())
			for i := 0; i < len(keys) && err == nil; i++ {
				err = b.Put([]byte(keys[i]), value)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	return s.db.Sync()
}

func (s *bboltStore) Do(key string, claim, result []byte) error {
	k := []byte(key)
	err := s.write(func(tx *bolt.Tx) error {
		b := tx.Bucket(s.bucket())
		if b.Get(k) != nil {
			return errTaken
		}
		return b.Put(k, claim)
	})
	if err != nil {
		return err
	}
	return s.write(func(tx *bolt.Tx) error { return tx.Bucket(s.bucket()).Put(k, result) })
}

func (s *bboltStore) Read(key string) (result []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		result = bytes.Clone(tx.Bucket(s.bucket()).Get([]byte(key)))
		return nil
	})
	return result, err
}

func (s *bboltStore) Close() error { return s.db.Close() }
