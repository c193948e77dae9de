package idemtest

import (
	"errors"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

func deleteChecks() []check {
	return []check{
		{name: "current version is removed", run: deleteCurrent},
		{name: "wrong version returns ErrConflict and removes nothing", run: deleteWrongVersion},
		{name: "version that was replaced returns ErrConflict", run: deleteOldVersion},
		{name: "no record returns ErrNotFound", run: deleteAbsent},
		{name: "deleted record returns ErrNotFound", run: deleteTwice},
		{name: "expired record returns ErrNotFound", run: deleteExpired},
		{name: "version of a deleted record does not match its successor", run: deleteSuccessor},
		{name: "other keys are left alone", run: deleteBesides},
	}
}

// wantDelete deletes and wants the error.
func (s *subject) wantDelete(t *testing.T, key idem.Key, version uint64, want error) {
	t.Helper()
	if err := s.Delete(t.Context(), key, version); !errors.Is(err, want) {
		t.Errorf("Delete(%q, version %d) = %v, want %v", key, version, err, want)
	}
}

func deleteCurrent(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	s.remove(t, rec)
	s.wantAbsent(t, rec.Key)
	s.wantEmpty(t)
}

func deleteWrongVersion(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	for _, wrong := range []uint64{0, rec.Version + 1, 1 << 63} {
		s.wantDelete(t, rec.Key, wrong, idem.ErrConflict)
	}
	s.wantRecord(t, rec)
}

func deleteOldVersion(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	current := s.swap(t, old.Version, s.completed("a"))
	s.wantDelete(t, old.Key, old.Version, idem.ErrConflict)
	s.wantRecord(t, current)
}

func deleteAbsent(t *testing.T, s *subject) {
	s.wantDelete(t, key("a"), 0, idem.ErrNotFound)
	s.wantDelete(t, key("a"), 1, idem.ErrNotFound)
}

func deleteTwice(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	s.remove(t, rec)
	s.wantDelete(t, rec.Key, rec.Version, idem.ErrNotFound)
}

func deleteExpired(t *testing.T, s *subject) {
	rec := s.create(t, s.expired("a", time.Hour))
	s.wantDelete(t, rec.Key, rec.Version, idem.ErrNotFound)
	s.wantDelete(t, rec.Key, rec.Version+1, idem.ErrNotFound)
}

func deleteSuccessor(t *testing.T, s *subject) {
	old := s.create(t, s.completed("a"))
	s.remove(t, old)
	successor := s.create(t, s.completed("a"))
	s.wantDelete(t, old.Key, old.Version, idem.ErrConflict)
	s.wantRecord(t, successor)
}

func deleteBesides(t *testing.T, s *subject) {
	a := s.create(t, s.completed("a"))
	s.remove(t, s.create(t, s.completed("b")))
	s.wantRecord(t, a)
	s.wantKeys(t, idem.Query{}, a.Key.String())
}
