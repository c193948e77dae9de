package table_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/idembolt/idem"
)

// watchedStore looks at all records after every write: no two rows may have the
// same value, and the index record of a row's value must name it.
type watchedStore struct {
	*idem.MemoryStore
	mu     sync.Mutex
	broken error // the first time that it was otherwise
	writes int
}

func watch() *watchedStore { return &watchedStore{MemoryStore: newMemory()} }

func (s *watchedStore) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, err := s.MemoryStore.Create(ctx, rec)
	return rec, s.look(err)
}

func (s *watchedStore) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, err := s.MemoryStore.Swap(ctx, version, rec)
	return rec, s.look(err)
}

func (s *watchedStore) Delete(ctx context.Context, key idem.Key, version uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(s.MemoryStore.Delete(ctx, key, version))
}

func (s *watchedStore) look(err error) error {
	if err != nil {
		return err
	}
	s.writes++
	if flaw := flawOf(s.MemoryStore); flaw != nil && s.broken == nil {
		s.broken = fmt.Errorf("after write %d: %w", s.writes, flaw)
	}
	return nil
}

// flawOf reads the records as the documentation describes them, not by the package.
func flawOf(store idem.Store) error {
	rowOf := make(map[string]string) // by value
	named := make(map[string]string) // by the index record's ID
	for rec, err := range store.Scan(context.Background(), idem.Query{}) {
		if err != nil {
			return err
		}
		if rec.Kind != "table" && rec.Kind != "table.unique" {
			continue
		}
		var v struct {
			Version uint64
			Value   account
			Row     string
		}
		if err := json.Unmarshal(rec.Value, &v); err != nil {
			return err
		}
		switch {
		case rec.Kind == "table.unique":
			named[rec.Key.ID] = v.Row
		case v.Version != 0 && v.Value.Email != "":
			if other, ok := rowOf[v.Value.Email]; ok {
				return fmt.Errorf("rows %s and %s both have %s", other, rec.Key.ID, v.Value.Email)
			}
			rowOf[v.Value.Email] = rec.Key.ID
		}
	}
	for value, row := range rowOf {
		sum := sha256.Sum256([]byte(value))
		if got := named[hex.EncodeToString(sum[:])]; got != row {
			return fmt.Errorf("row %s has %s, but the index names %q", row, value, got)
		}
	}
	return nil
}

var errCrashed = errors.New("crashed")

// crashingStore is used by a process that dies at a write.
type crashingStore struct {
	idem.Store
	left int  // writes that it makes before that
	late bool // the write at which it dies is made
	dead bool
}

func (s *crashingStore) Now() time.Time { return s.Store.(idem.Clock).Now() }

func (s *crashingStore) dies() bool {
	if s.left == 0 {
		s.dead = true
	}
	s.left--
	return s.dead
}

func (s *crashingStore) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	if s.dead || s.dies() && !s.late {
		return idem.Record{}, errCrashed
	}
	rec, err := s.Store.Create(ctx, rec)
	if s.dead {
		return idem.Record{}, errCrashed
	}
	return rec, err
}

func (s *crashingStore) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	if s.dead || s.dies() && !s.late {
		return idem.Record{}, errCrashed
	}
	rec, err := s.Store.Swap(ctx, version, rec)
	if s.dead {
		return idem.Record{}, errCrashed
	}
	return rec, err
}

func (s *crashingStore) Delete(ctx context.Context, key idem.Key, version uint64) error {
	if s.dead || s.dies() && !s.late {
		return errCrashed
	}
	err := s.Store.Delete(ctx, key, version)
	if s.dead {
		return errCrashed
	}
	return err
}

func (s *crashingStore) Get(ctx context.Context, key idem.Key) (idem.Record, error) {
	if s.dead {
		return idem.Record{}, errCrashed
	}
	return s.Store.Get(ctx, key)
}

// steppedStore does nothing until it is told to, once for every call.
type steppedStore struct {
	idem.Store
	step chan bool // of a write: true
}

func (s steppedStore) Now() time.Time { return s.Store.(idem.Clock).Now() }

func (s steppedStore) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	s.step <- true
	return s.Store.Create(ctx, rec)
}

func (s steppedStore) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	s.step <- true
	return s.Store.Swap(ctx, version, rec)
}

func (s steppedStore) Delete(ctx context.Context, key idem.Key, version uint64) error {
	s.step <- true
	return s.Store.Delete(ctx, key, version)
}

func (s steppedStore) Get(ctx context.Context, key idem.Key) (idem.Record, error) {
	s.step <- false
	return s.Store.Get(ctx, key)
}

// steppers are clients of one store of whom one goes on at a time.
type steppers struct {
	steps []chan bool
	ended []chan struct{}
}

// start runs clients, each on a store of its own over the one.
func (s *steppers) start(clients int, store idem.Store, client func(n int, store idem.Store)) {
	for n := range clients {
		step, ended := make(chan bool), make(chan struct{})
		s.steps, s.ended = append(s.steps, step), append(s.ended, ended)
		go func() {
			defer close(ended)
			client(n, steppedStore{store, step})
		}()
	}
}

// drive lets them go on in turns until all have ended. A turn is a few calls, or a
// few writes and all the reads before them, among which the client may wait for
// others until its patience is over. It is for a synctest bubble, where waiting for a
// client that sleeps lets the time pass.
func (s *steppers) drive(random *rand.Rand) {
	for len(s.steps) > 0 {
		n := random.IntN(len(s.steps))
		if s.turn(n, 1+random.IntN(6), random.IntN(2) == 0) {
			s.steps, s.ended = slices.Delete(s.steps, n, n+1), slices.Delete(s.ended, n, n+1)
		}
	}
}

// turn lets a client go on for a number of calls, or of writes. It reports whether
// the client has ended.
func (s *steppers) turn(n, calls int, onlyWrites bool) bool {
	for calls > 0 {
		select {
		case write := <-s.steps[n]:
			synctest.Wait()
			if write || !onlyWrites {
				calls--
			}
		case <-s.ended[n]:
			return true
		}
	}
	return false
}
