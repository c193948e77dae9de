package idemtest

import (
	"testing"
	"time"

	"github.com/idembolt/idem"
)

func createChecks() []check {
	return []check{
		{name: "free key is stored and returned with its version", run: createFree},
		{name: "record with another key leaves this one alone", run: createBesides},
		{name: "existing live key returns it with ErrConflict", run: createExisting},
		{name: "live Processing record is a conflict", run: createOverProcessing},
		{name: "expired record is replaced as if absent", run: createOverExpired},
		{name: "record that expires is replaced as if absent", run: createOverExpiring},
		{name: "Processing record past its expiry is a conflict while its lease runs", run: createOverLease},
		{name: "deleted key can be created again", run: createAfterDelete},
		{name: "version in the argument is ignored", run: createIgnoresVersion},
	}
}

func createFree(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	if rec.Version == 0 {
		t.Errorf("Create(%q) returned version 0, want one from 1 on", rec.Key)
	}
	s.wantRecord(t, rec)
}

func createBesides(t *testing.T, s *subject) {
	a := s.create(t, s.completed("a"))
	b := s.create(t, s.processing("b"))
	s.wantRecord(t, a)
	s.wantRecord(t, b)
}

// conflict creates another record under the key of current, and wants it
// refused without a trace.
func (s *subject) conflict(t *testing.T, current idem.Record) {
	t.Helper()
	other := s.completed(current.Key.ID)
	other.Value, other.Owner = []byte("other"), "other"
	got, err := s.Create(t.Context(), other)
	wantConflict(t, "Create", current.Key, got, err, &current)
	s.wantRecord(t, current)
}

func createExisting(t *testing.T, s *subject) {
	s.conflict(t, s.create(t, s.completed("a")))
}

func createOverProcessing(t *testing.T, s *subject) {
	s.conflict(t, s.create(t, s.processing("a")))
}

func createOverExpired(t *testing.T, s *subject) {
	old := s.create(t, s.expired("a", time.Hour))
	got := s.create(t, withValue(s.completed("a"), "new"))
	if got.Version <= old.Version {
		t.Errorf("Create(%q) over an expired record returned version %d, want more than %d", old.Key, got.Version, old.Version)
	}
	s.wantRecord(t, got)
}

func createOverExpiring(t *testing.T, s *subject) {
	old := s.create(t, s.expiring("a"))
	s.waitUntilAbsent(t, old.Key)
	s.wantRecord(t, s.create(t, withValue(s.completed("a"), "new")))
}

func createOverLease(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.ExpiresAt = rec.CreatedAt.Add(-time.Hour)
	s.conflict(t, s.create(t, rec))
}

func createAfterDelete(t *testing.T, s *subject) {
	old := s.create(t, s.completed("a"))
	s.remove(t, old)
	s.wantRecord(t, s.create(t, withValue(s.processing("a"), "new")))
}

func createIgnoresVersion(t *testing.T, s *subject) {
	rec := s.completed("a")
	rec.Version = 1 << 62
	got := s.create(t, rec)
	if got.Version == rec.Version {
		t.Errorf("Create(%q) took version %d from its argument, want one of its own", rec.Key, got.Version)
	}
	s.wantRecord(t, got)
}

// waitUntilAbsent waits until the record of key has expired.
func (s *subject) waitUntilAbsent(t *testing.T, key idem.Key) {
	t.Helper()
	gone := eventually(func() bool {
		_, err := s.Get(t.Context(), key)
		return err != nil
	})
	if !gone {
		t.Fatalf("Get(%q) still finds the record long after its ExpiresAt, want ErrNotFound", key)
	}
	s.wantAbsent(t, key)
}
