package idemtest

import (
	"testing"
	"time"

	"github.com/idembolt/idem"
)

func swapChecks() []check {
	return []check{
		{name: "current version is replaced and a greater one returned", run: swapCurrent},
		{name: "every state can follow every state", run: swapStates},
		{name: "wrong version returns the current record with ErrConflict", run: swapWrongVersion},
		{name: "version that was replaced is refused", run: swapOldVersion},
		{name: "version 0 is refused for a live record", run: swapVersionZero},
		{name: "no record returns the zero Record with ErrConflict", run: swapAbsent},
		{name: "deleted record returns the zero Record with ErrConflict", run: swapDeleted},
		{name: "expired record returns the zero Record with ErrConflict", run: swapExpired},
		{name: "Processing record past its expiry is replaced while its lease runs", run: swapLease},
		{name: "version of a deleted record does not match its successor", run: swapSuccessor},
		{name: "expiry of the new record counts, when it is earlier", run: swapShortens},
		{name: "expiry of the new record counts, when it is later", run: swapExtends},
		{name: "version in the record is ignored", run: swapIgnoresVersion},
		{name: "other keys are left alone", run: swapBesides},
	}
}

func swapCurrent(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	got := s.swap(t, old.Version, s.completed("a"))
	if got.Version <= old.Version {
		t.Errorf("Swap(%q) returned version %d, want more than %d", old.Key, got.Version, old.Version)
	}
	s.wantRecord(t, got)
}

func swapStates(t *testing.T, s *subject) {
	current := s.create(t, s.processing("a"))
	for _, from := range idem.States() {
		for _, to := range idem.States() {
			for _, state := range []idem.State{from, to} {
				next := s.processing("a")
				if next.State = state; state != idem.Processing {
					next.LeaseUntil = time.Time{}
				}
				current = s.swap(t, current.Version, next)
			}
			s.wantRecord(t, current)
		}
	}
}

// refuse swaps another record in at a version that must not match, and wants
// the current record, or none, in the answer and afterwards.
func (s *subject) refuse(t *testing.T, key idem.Key, version uint64, current *idem.Record) {
	t.Helper()
	other := s.completedAt(key)
	other.Value, other.Owner = []byte("other"), "other"
	got, err := s.Swap(t.Context(), version, other)
	wantConflict(t, "Swap", key, got, err, current)
	if current == nil {
		s.wantAbsent(t, key)
		return
	}
	s.wantRecord(t, *current)
}

func swapWrongVersion(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	s.refuse(t, rec.Key, rec.Version+1, &rec)
	s.refuse(t, rec.Key, 1<<63, &rec)
}

func swapOldVersion(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	current := s.swap(t, old.Version, s.completed("a"))
	s.refuse(t, old.Key, old.Version, &current)
}

func swapVersionZero(t *testing.T, s *subject) {
	rec := s.create(t, s.processing("a"))
	s.refuse(t, rec.Key, 0, &rec)
}

func swapAbsent(t *testing.T, s *subject) {
	s.refuse(t, key("a"), 0, nil)
	s.refuse(t, key("a"), 1, nil)
	s.wantEmpty(t)
}

func swapDeleted(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	s.remove(t, rec)
	s.refuse(t, rec.Key, rec.Version, nil)
}

func swapExpired(t *testing.T, s *subject) {
	rec := s.create(t, s.expired("a", time.Hour))
	s.refuse(t, rec.Key, rec.Version, nil)
}

func swapLease(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.ExpiresAt = rec.CreatedAt.Add(-time.Hour)
	rec = s.create(t, rec)
	s.wantRecord(t, s.swap(t, rec.Version, s.completed("a")))
}

func swapSuccessor(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	s.remove(t, old)
	successor := s.create(t, s.processing("a"))
	s.refuse(t, old.Key, old.Version, &successor)
}

func swapShortens(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	s.swap(t, rec.Version, s.expired("a", time.Minute))
	s.wantAbsent(t, rec.Key)
}

func swapExtends(t *testing.T, s *subject) {
	// The lease keeps the old record alive past its expiry, so that nothing here
	// races with the clock.
	rec := s.processing("a")
	rec.ExpiresAt = rec.CreatedAt.Add(-time.Hour)
	rec = s.create(t, rec)
	s.wantRecord(t, s.swap(t, rec.Version, s.completed("a")))
	s.expire(t, 10, 0)
	if _, err := s.Get(t.Context(), rec.Key); err != nil {
		t.Errorf("Get(%q) = %v after Swap gave it a later ExpiresAt and Expire ran, want the record", rec.Key, err)
	}
}

func swapIgnoresVersion(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	next := s.completed("a")
	next.Version = 1 << 62
	got := s.swap(t, old.Version, next)
	if got.Version == next.Version {
		t.Errorf("Swap(%q) took version %d from its record, want one of its own", old.Key, got.Version)
	}
	s.wantRecord(t, got)
}

func swapBesides(t *testing.T, s *subject) {
	a := s.create(t, s.processing("a"))
	b := s.create(t, s.processing("b"))
	b2 := s.swap(t, b.Version, s.completed("b"))
	s.wantRecord(t, a)
	s.wantRecord(t, b2)
}
