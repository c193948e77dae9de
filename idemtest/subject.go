package idemtest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

const (
	// patience is how long a check waits for what must happen soon.
	patience  = 10 * time.Second
	pollEvery = 2 * time.Millisecond
	// soon is the remaining life of records that expire while a check watches:
	// long enough for a slow machine to see them alive.
	soon = 150 * time.Millisecond
	// clockSlack is how far two readings of the store's time may be apart that
	// were not taken at the same place.
	clockSlack = time.Millisecond
)

// subject is the store under test with what checks need around it.
type subject struct {
	idem.Store
	// current returns the store itself, which has the optional interfaces.
	current      func() idem.Store
	selfExpiring bool
}

// now is the time of the store as records carry it.
func (s *subject) now() time.Time {
	now := time.Now()
	if c, ok := s.current().(idem.Clock); ok {
		now = c.Now()
	}
	return now.UTC().Truncate(time.Microsecond)
}

// create stores rec under a free key and returns it as stored, which must be as
// given but for the version.
func (s *subject) create(t *testing.T, rec idem.Record) idem.Record {
	t.Helper()
	stored, err := s.Create(t.Context(), rec)
	if err != nil {
		t.Fatalf("Create(%q) = %s, want success: the key is free", rec.Key, outcome(stored, err))
	}
	wantGiven(t, "Create", stored, rec)
	return stored
}

// swap replaces the version of rec.Key and returns the record as stored, which
// must be as given but for the version.
func (s *subject) swap(t *testing.T, version uint64, rec idem.Record) idem.Record {
	t.Helper()
	stored, err := s.Swap(t.Context(), version, rec)
	if err != nil {
		t.Fatalf("Swap(%q, version %d) = %s, want success: it is the current version", rec.Key, version, outcome(stored, err))
	}
	wantGiven(t, "Swap", stored, rec)
	return stored
}

// wantGiven checks that a record was stored as it was given.
func wantGiven(t *testing.T, call string, stored, given idem.Record) {
	t.Helper()
	given.Version = stored.Version
	if d := diff(stored, given); d != "" {
		t.Errorf("%s(%q) returned another record than it was given: %s", call, given.Key, d)
	}
}

// remove deletes the record.
func (s *subject) remove(t *testing.T, rec idem.Record) {
	t.Helper()
	if err := s.Delete(t.Context(), rec.Key, rec.Version); err != nil {
		t.Fatalf("Delete(%q, version %d) = %v, want success: it is the current version", rec.Key, rec.Version, err)
	}
}

// expire calls Expire and wants it to remove n records.
func (s *subject) expire(t *testing.T, limit, n int) {
	t.Helper()
	removed, err := s.Expire(t.Context(), limit)
	if err != nil || removed != n && !s.selfExpiring {
		t.Fatalf("Expire(limit %d) = %d, %v, want %d, nil", limit, removed, err, n)
	}
}

// wantRecord checks that the key holds exactly this record.
func (s *subject) wantRecord(t *testing.T, want idem.Record) {
	t.Helper()
	got, err := s.Get(t.Context(), want.Key)
	if err != nil {
		t.Errorf("Get(%q) = %s, want %s", want.Key, outcome(got, err), outcome(want, nil))
		return
	}
	if d := diff(got, want); d != "" {
		t.Errorf("Get(%q) = %s", want.Key, d)
	}
}

// wantAbsent checks that the key has no live record.
func (s *subject) wantAbsent(t *testing.T, key idem.Key) {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	if !errors.Is(err, idem.ErrNotFound) {
		t.Errorf("Get(%q) = %s, want ErrNotFound", key, outcome(got, err))
	}
	if got.Version != 0 {
		t.Errorf("Get(%q) returned version %d beside ErrNotFound, want the zero Record", key, got.Version)
	}
}

// wantConflict checks the answer of a call that lost: ErrConflict, with the
// current record, or the zero Record if current is nil.
func wantConflict(t *testing.T, call string, key idem.Key, got idem.Record, err error, current *idem.Record) {
	t.Helper()
	if !errors.Is(err, idem.ErrConflict) {
		t.Errorf("%s(%q) = %s, want ErrConflict", call, key, outcome(got, err))
		return
	}
	if current == nil {
		if got.Version != 0 || got.Key != (idem.Key{}) || got.State != 0 {
			t.Errorf("%s(%q) = %s, want the zero Record beside ErrConflict: there is no live record", call, key, outcome(got, err))
		}
		return
	}
	if d := diff(got, *current); d != "" {
		t.Errorf("%s(%q) returned beside ErrConflict not the current record: %s", call, key, d)
	}
}

// scan collects what a Scan yields.
func (s *subject) scan(t *testing.T, q idem.Query) []idem.Record {
	t.Helper()
	var found []idem.Record
	for rec, err := range s.Scan(t.Context(), q) {
		if err != nil {
			t.Fatalf("Scan(%+v) yielded %s, want no error", q, outcome(rec, err))
		}
		found = append(found, rec)
	}
	return found
}

// wantKeys checks which keys a Scan yields, and in which order.
func (s *subject) wantKeys(t *testing.T, q idem.Query, want ...string) {
	t.Helper()
	var got []string
	for _, rec := range s.scan(t, q) {
		got = append(got, rec.Key.String())
	}
	if d := diffKeys(got, want); d != "" {
		t.Errorf("Scan(%+v): %s", q, d)
	}
}

// wantEmpty checks that the store holds nothing, not even expired records.
func (s *subject) wantEmpty(t *testing.T) {
	t.Helper()
	s.wantKeys(t, idem.Query{Expired: true})
}

// seed creates many records, a few at once and without closing the store in
// between.
func (s *subject) seed(t *testing.T, recs ...idem.Record) {
	t.Helper()
	store := s.current()
	const workers = 4
	together(workers, func(i int) {
		for ; i < len(recs); i += workers {
			if stored, err := store.Create(t.Context(), recs[i]); err != nil {
				t.Errorf("Create(%q) = %s, want success: the key is free", recs[i].Key, outcome(stored, err))
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
}

// together runs n calls at the same time and waits until all have returned.
func together(n int, call func(i int)) {
	var running sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		running.Go(func() {
			<-start
			call(i)
		})
	}
	close(start)
	running.Wait()
}

// eventually polls until done reports true, and reports false when it did not
// within patience.
func eventually(done func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pollEvery) {
		if done() {
			return true
		}
	}
	return done()
}
