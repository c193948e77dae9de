package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/idembolt/idem"
)

// idemStore is this library with its defaults. It makes its own claim, of about
// the size of the others'.
type idemStore struct {
	path  string
	guard *idem.Guard
	keys  []string // some that are in the store from the start
}

func (s *idemStore) Setup(t target) error {
	s.path = filepath.Join(t.Dir, "idem.db")
	if err := s.load(t.Records); err != nil {
		return err
	}
	var err error
	s.guard, err = idem.Open(s.path)
	return err
}

// load creates finished records, as a visitor, because one does not begin a
// journal: that makes few large commits of the many callers' writes.
func (s *idemStore) load(records int) error {
	bolt, err := idem.OpenBoltStore(context.Background(), s.path, idem.BoltConfig{Visitor: true})
	if err != nil {
		return err
	}
	defer bolt.Close()
	value := make([]byte, resultBytes)
	return load(records, func(keys []string) error {
		s.keys = append(s.keys, keys[:min(1000, len(keys))]...)
		return inParallel(keys, func(key string) error {
			now := time.Now()
			_, err := bolt.Create(context.Background(), idem.Record{
				Key: idemKey(key), State: idem.Completed, Kind: "func", Attempt: 1, Value: value,
				CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(idem.API.Retention),
			})
			return err
		})
	})
}

// inParallel calls do for every key, as many at once as a commit takes.
func inParallel(keys []string, do func(string) error) error {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 1024)
	failed := make(chan error, 1)
	for _, key := range keys {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := do(key); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func idemKey(key string) idem.Key {
	scope, id, _ := strings.Cut(key, "/")
	return idem.Key{Scope: scope, ID: id}
}

func (s *idemStore) Do(key string, _, result []byte) error {
	res, err := idem.Do(context.Background(), s.guard, idemKey(key), nil,
		func(context.Context, *idem.Attempt) ([]byte, error) { return result, nil })
	if err == nil && res.Replayed {
		return errTaken
	}
	return err
}

func (s *idemStore) Read(key string) ([]byte, error) {
	rec, err := s.guard.Store().Get(context.Background(), idemKey(key))
	return rec.Value, err
}

func (s *idemStore) Close() error { return s.guard.Close() }
