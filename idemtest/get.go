package idemtest

import (
	"testing"
	"time"
)

func getChecks() []check {
	return []check{
		{name: "no record returns ErrNotFound", run: func(t *testing.T, s *subject) { s.wantAbsent(t, key("a")) }},
		{name: "newest version is returned, however often it was read before", run: getNewest},
		{name: "deleted record returns ErrNotFound, however often it was read before", run: getDeleted},
		{name: "expired record returns ErrNotFound", run: getExpired},
		{name: "record is returned until it expires and not after", run: getExpiring},
		{name: "Processing record past its expiry is returned while its lease runs", run: getLease},
		{name: "Processing record past its expiry and its lease returns ErrNotFound", run: getLeaseOver},
		{name: "Processing record past its lease is returned until it expires", run: getInterrupted},
	}
}

// Reading before every change gives a cache the chance to keep what is old.
func getNewest(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	for _, value := range []string{"one", "two", "three"} {
		s.wantRecord(t, rec)
		rec = s.swap(t, rec.Version, withValue(s.completed("a"), value))
		s.wantRecord(t, rec)
	}
}

func getDeleted(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	s.wantRecord(t, rec)
	s.remove(t, rec)
	s.wantAbsent(t, rec.Key)
	s.wantAbsent(t, rec.Key)
}

func getExpired(t *testing.T, s *subject) {
	rec := s.create(t, s.expired("a", time.Hour))
	s.wantAbsent(t, rec.Key)
}

func getExpiring(t *testing.T, s *subject) {
	rec := s.create(t, s.expiring("a"))
	got, err := s.Get(t.Context(), rec.Key)
	if after := s.now(); err != nil && after.Before(rec.ExpiresAt) {
		t.Errorf("Get(%q) = %s at %s, want the record: it expires at %s", rec.Key, outcome(got, err), after, rec.ExpiresAt)
	}
	s.waitUntilAbsent(t, rec.Key)
	if now := s.now(); now.Add(clockSlack).Before(rec.ExpiresAt) {
		t.Errorf("Get(%q) = ErrNotFound at %s, want the record: it expires at %s", rec.Key, now, rec.ExpiresAt)
	}
}

func getLease(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.ExpiresAt = rec.CreatedAt.Add(-time.Hour)
	s.wantRecord(t, s.create(t, rec))
}

func getLeaseOver(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.LeaseUntil = rec.CreatedAt.Add(-2 * time.Hour)
	rec.ExpiresAt = rec.CreatedAt.Add(-time.Hour)
	s.wantAbsent(t, s.create(t, rec).Key)
}

func getInterrupted(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.LeaseUntil = rec.CreatedAt.Add(-2 * time.Hour)
	s.wantRecord(t, s.create(t, rec))
}
