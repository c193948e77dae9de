package idemtest

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

// ExerciseReopen certifies that a store keeps what it has promised when it is
// closed and opened again. It runs the checks of Exercise with the store closed
// and opened before every call, but for those whose calls overlap, and some
// that look across one opening: the secret, the clock, results of a guard.
//
// open returns an empty store and a function that closes the store handed out
// last and opens the same one again; it fails the test itself when it cannot.
// open registers the cleanup. A store that keeps expired records for a while
// after it was opened must be configured not to.
//
// It shows nothing about crashes: closing may write what a crash would lose.
func ExerciseReopen(t *testing.T, open func(t *testing.T) (store idem.Store, reopen func() idem.Store), opts ...Option) {
	t.Helper()
	c := newConfig(opts)
	topics := append(sequential(contracts()), topic{"Reopen", reopenChecks()})
	c.run(t, topics, func(t *testing.T) *subject {
		store, reopen := open(t)
		r := &reopening{store: store, reopen: reopen}
		return &subject{Store: r, current: r.current, selfExpiring: c.selfExpiring}
	})
}

// sequential leaves out checks whose calls overlap.
func sequential(topics []topic) []topic {
	var kept []topic
	for _, one := range topics {
		one.checks = slices.DeleteFunc(one.checks, func(c check) bool { return c.overlaps })
		if len(one.checks) > 0 {
			kept = append(kept, one)
		}
	}
	return kept
}

// reopening is a store that is closed and opened before every call.
type reopening struct {
	mu     sync.Mutex // held during a call
	store  idem.Store
	reopen func() idem.Store
}

func (r *reopening) current() idem.Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store
}

// fresh opens the store again and keeps it open until unlock is called.
func (r *reopening) fresh() (store idem.Store, unlock func()) {
	r.mu.Lock()
	r.store = r.reopen()
	return r.store, r.mu.Unlock
}

func (r *reopening) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	store, unlock := r.fresh()
	defer unlock()
	return store.Create(ctx, rec)
}

func (r *reopening) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	store, unlock := r.fresh()
	defer unlock()
	return store.Swap(ctx, version, rec)
}

func (r *reopening) Delete(ctx context.Context, key idem.Key, version uint64) error {
	store, unlock := r.fresh()
	defer unlock()
	return store.Delete(ctx, key, version)
}

func (r *reopening) Get(ctx context.Context, key idem.Key) (idem.Record, error) {
	store, unlock := r.fresh()
	defer unlock()
	return store.Get(ctx, key)
}

// Scan does not keep the store open: the loop's body may call it.
func (r *reopening) Scan(ctx context.Context, q idem.Query) iter.Seq2[idem.Record, error] {
	store, unlock := r.fresh()
	defer unlock()
	return store.Scan(ctx, q)
}

func (r *reopening) Expire(ctx context.Context, limit int) (int, error) {
	store, unlock := r.fresh()
	defer unlock()
	return store.Expire(ctx, limit)
}

func reopenChecks() []check {
	return []check{
		{name: "many records of every state are there again", run: reopenMany},
		{name: "secret stays the same", run: reopenSecret},
		{name: "clock does not go back", run: reopenClock},
		{name: "result is replayed by a guard on the opened store", run: reopenReplays},
		{name: "attempt of the closed store does not run again by itself", run: reopenInterrupted},
		{name: "opening and closing without work keeps everything", run: reopenIdle},
	}
}

// opened closes the store, opens it again and returns the store itself.
func (s *subject) opened() idem.Store {
	store, unlock := s.Store.(*reopening).fresh()
	defer unlock()
	return store
}

func reopenMany(t *testing.T, s *subject) {
	var want []idem.Record
	for i, k := range numbered(200) {
		rec := s.full(k.ID)
		if rec.State = idem.States()[i%4]; rec.State != idem.Processing {
			rec.LeaseUntil = time.Time{}
		}
		want = append(want, rec)
	}
	s.seed(t, want...)
	got := s.scan(t, idem.Query{})
	if len(got) != len(want) {
		t.Fatalf("Scan yielded %d records after the store was opened again, want %d", len(got), len(want))
	}
	for i := range want {
		want[i].Version = got[i].Version // they were written concurrently
		if d := diff(got[i], want[i]); d != "" {
			t.Errorf("Scan yielded for %q: %s", want[i].Key, d)
		}
	}
}

func reopenSecret(t *testing.T, s *subject) {
	secret := s.keeper(t).Secret()
	for range 2 {
		s.opened()
		if !bytes.Equal(s.keeper(t).Secret(), secret) {
			t.Errorf("Secret() is another one after the store was opened again, want the same")
		}
	}
}

func reopenClock(t *testing.T, s *subject) {
	for _, k := range numbered(5) {
		s.create(t, s.completedAt(k))
		before := s.clock(t).Now()
		s.opened()
		if now := s.clock(t).Now(); now.Add(clockSlack).Before(before) {
			t.Errorf("Now() = %s after the store was opened again, want not before %s", now, before)
		}
	}
}

// A guard on the store itself keys its fingerprints with the store's secret.
func reopenReplays(t *testing.T, s *subject) {
	var runs atomic.Int64
	for _, value := range []string{"first", "second", "third"} {
		on := &subject{Store: s.opened(), current: s.current}
		wantDo(t, on.guard(t), returning(&runs, value, nil), &runs, "first", nil, 1)
	}
}

func reopenInterrupted(t *testing.T, s *subject) {
	rec := s.processing("a")
	if l, ok := s.current().(idem.Liveness); ok {
		rec.Owner = l.Owner() + "#1"
	}
	rec = s.create(t, rec)
	on := &subject{Store: s.opened(), current: s.current}
	ran := false
	_, err := idem.Do(t.Context(), on.guard(t), rec.Key, nil, func(context.Context, *idem.Attempt) (string, error) {
		ran = true
		return "", nil
	})
	if ran || !errors.Is(err, idem.ErrInterrupted) && !errors.Is(err, idem.ErrInProgress) {
		t.Errorf("Do(%q) over an attempt of the closed store = %v, ran %t, want ErrInterrupted or ErrInProgress without a run", rec.Key, err, ran)
	}
	s.wantRecord(t, rec)
}

func reopenIdle(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	for range 5 {
		s.opened()
	}
	s.wantRecord(t, rec)
	s.swap(t, rec.Version, s.processing("a"))
}
