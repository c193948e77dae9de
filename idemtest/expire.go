package idemtest

import (
	"testing"
	"time"

	"github.com/idembolt/idem"
)

func expireChecks() []check {
	return []check{
		{name: "empty store returns 0", run: func(t *testing.T, s *subject) { s.expire(t, 10, 0) }},
		{name: "live records are left alone", run: expireLive},
		{name: "expired records are removed and counted", run: expireRemoves},
		{name: "second call finds nothing", run: expireTwice},
		{name: "at most limit records are removed", keepsExpired: true, run: expireLimit},
		{name: "limit 0 removes nothing", keepsExpired: true, run: expireNone},
		{name: "oldest expiry goes first", keepsExpired: true, run: expireOldest},
		{name: "record whose time runs out while the store is open is removed", run: expireRunsOut},
		{name: "Processing record is never removed while its lease runs", run: expireLease},
		{name: "Processing record past its lease is not removed before it expires", run: expireInterrupted},
		{name: "Processing record past its lease and expiry is removed", run: expireLeaseOver},
		{name: "record that was given a later expiry is left alone", run: expireExtended},
		{name: "record that was given an earlier expiry is removed", run: expireShortened},
		{name: "successor of an expired record is left alone", run: expireSuccessor},
		{name: "successor of a deleted record is left alone", run: expireAfterDelete},
		{name: "deleted record is not counted", run: expireDeleted},
	}
}

func expireLive(t *testing.T, s *subject) {
	recs := []idem.Record{s.create(t, s.completed("a")), s.create(t, s.processing("b")), s.create(t, s.full("c"))}
	s.expire(t, 10, 0)
	for _, rec := range recs {
		s.wantRecord(t, rec)
	}
}

func expireRemoves(t *testing.T, s *subject) {
	s.mixed(t)
	s.expire(t, 10, 2)
	s.wantKeys(t, idem.Query{Expired: true}, scope+"/a", scope+"/c", scope+"/e", scope+"/f")
	s.wantAbsent(t, key("b"))
}

func expireTwice(t *testing.T, s *subject) {
	s.create(t, s.expired("a", time.Hour))
	s.expire(t, 10, 1)
	s.expire(t, 10, 0)
}

func expireLimit(t *testing.T, s *subject) {
	s.seedExpired(t, 7)
	s.expire(t, 3, 3)
	s.expire(t, 3, 3)
	s.expire(t, 3, 1)
	s.expire(t, 3, 0)
	s.wantEmpty(t)
}

func expireNone(t *testing.T, s *subject) {
	s.seedExpired(t, 2)
	s.expire(t, 0, 0)
	s.wantKeys(t, idem.Query{Expired: true}, texts(numbered(2))...)
}

// seedExpired stores numbered records, of which the later ones expired earlier:
// neither the order of keys nor that of writing is that of expiry.
func (s *subject) seedExpired(t *testing.T, n int) {
	t.Helper()
	var recs []idem.Record
	for i, k := range numbered(n) {
		recs = append(recs, s.expired(k.ID, time.Duration(1+i)*time.Minute))
	}
	s.seed(t, recs...)
}

func expireOldest(t *testing.T, s *subject) {
	s.seedExpired(t, 6)
	all := texts(numbered(6))
	for left := 5; left >= 0; left-- {
		s.expire(t, 1, 1)
		s.wantKeys(t, idem.Query{Expired: true}, all[:left]...)
	}
}

func expireRunsOut(t *testing.T, s *subject) {
	s.create(t, s.completed("a"))
	rec := s.create(t, s.expiring("b"))
	s.waitUntilAbsent(t, rec.Key)
	s.expire(t, 10, 1)
	s.wantKeys(t, idem.Query{Expired: true}, scope+"/a")
}

func expireLease(t *testing.T, s *subject) {
	held := s.processing("a")
	held.ExpiresAt = held.CreatedAt.Add(-time.Hour)
	held = s.create(t, held)
	s.create(t, s.expired("b", time.Minute)) // behind the held one in the order of expiry
	s.expire(t, 10, 1)
	s.wantRecord(t, held)
	s.expire(t, 10, 0)
	s.wantRecord(t, held)
}

func expireInterrupted(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.LeaseUntil = rec.CreatedAt.Add(-time.Hour)
	rec = s.create(t, rec)
	s.expire(t, 10, 0)
	s.wantRecord(t, rec)
}

func expireLeaseOver(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.LeaseUntil, rec.ExpiresAt = rec.CreatedAt.Add(-2*time.Hour), rec.CreatedAt.Add(-time.Hour)
	s.create(t, rec)
	s.expire(t, 10, 1)
	s.wantEmpty(t)
}

func expireExtended(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.ExpiresAt = rec.CreatedAt.Add(-time.Hour) // but its lease runs, so Swap finds it live
	rec = s.create(t, rec)
	rec = s.swap(t, rec.Version, s.completed("a"))
	s.expire(t, 10, 0)
	s.wantRecord(t, rec)
}

func expireShortened(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	s.swap(t, rec.Version, s.expired("a", time.Minute))
	s.expire(t, 10, 1)
	s.wantEmpty(t)
	s.expire(t, 10, 0)
}

func expireSuccessor(t *testing.T, s *subject) {
	s.create(t, s.expired("a", time.Hour))
	successor := s.create(t, s.completed("a"))
	s.expire(t, 10, 0)
	s.wantRecord(t, successor)
}

func expireAfterDelete(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.ExpiresAt = rec.CreatedAt.Add(-time.Hour) // but its lease runs, so Delete finds it live
	s.remove(t, s.create(t, rec))
	successor := s.create(t, s.completed("a"))
	s.expire(t, 10, 0)
	s.wantRecord(t, successor)
}

func expireDeleted(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.ExpiresAt = rec.CreatedAt.Add(-time.Hour)
	s.remove(t, s.create(t, rec))
	s.expire(t, 10, 0)
	s.wantEmpty(t)
}
