package idemtest

import (
	"testing"
	"time"

	"github.com/idembolt/idem"
)

func versionChecks() []check {
	return []check{
		{name: "greater after every Swap", run: versionsSwap},
		{name: "greater after Delete and Create", run: versionsDelete},
		{name: "greater after many lives of one key", run: versionsLives},
		{name: "greater after Create over an expired record", run: versionsExpired},
		{name: "greater after Expire removed the record", run: versionsPurged},
		{name: "greater after Expire removed the record beside others", run: versionsPurgedBeside},
		{name: "a failed call does not make the version go back", run: versionsFailedCall},
	}
}

// rising remembers the highest version of a key.
type rising struct{ last uint64 }

func (r *rising) see(t *testing.T, after string, rec idem.Record) idem.Record {
	t.Helper()
	if rec.Version <= r.last {
		t.Fatalf("version of %q after %s = %d, want more than %d: it had that before", rec.Key, after, rec.Version, r.last)
	}
	r.last = rec.Version
	return rec
}

func versionsSwap(t *testing.T, s *subject) {
	var v rising
	rec := v.see(t, "Create", s.create(t, s.processing("a")))
	for range 10 {
		rec = v.see(t, "Swap", s.swap(t, rec.Version, s.processing("a")))
	}
}

func versionsDelete(t *testing.T, s *subject) {
	var v rising
	rec := v.see(t, "Create", s.create(t, s.processing("a")))
	rec = v.see(t, "Swap", s.swap(t, rec.Version, s.completed("a")))
	s.remove(t, rec)
	v.see(t, "Delete and Create", s.create(t, s.processing("a")))
}

func versionsLives(t *testing.T, s *subject) {
	var v rising
	for range 5 {
		rec := v.see(t, "Delete and Create", s.create(t, s.processing("a")))
		rec = v.see(t, "Swap", s.swap(t, rec.Version, s.completed("a")))
		s.remove(t, rec)
	}
	s.wantEmpty(t)
}

func versionsExpired(t *testing.T, s *subject) {
	var v rising
	rec := v.see(t, "Create", s.create(t, s.completed("a")))
	v.see(t, "Swap", s.swap(t, rec.Version, s.expired("a", time.Hour)))
	v.see(t, "Create over the expired record", s.create(t, s.processing("a")))
}

func versionsPurged(t *testing.T, s *subject) {
	var v rising
	for range 3 {
		rec := v.see(t, "Expire and Create", s.create(t, s.completed("a")))
		v.see(t, "Swap", s.swap(t, rec.Version, s.expired("a", time.Hour)))
		s.expire(t, 10, 1)
		s.wantEmpty(t)
	}
	v.see(t, "Expire and Create", s.create(t, s.completed("a")))
}

func versionsPurgedBeside(t *testing.T, s *subject) {
	var v rising
	s.create(t, s.completed("b"))
	v.see(t, "Create", s.create(t, s.expired("a", time.Hour)))
	s.expire(t, 10, 1)
	v.see(t, "Expire and Create", s.create(t, s.completed("a")))
}

func versionsFailedCall(t *testing.T, s *subject) {
	var v rising
	rec := v.see(t, "Create", s.create(t, s.processing("a")))
	s.refuse(t, rec.Key, rec.Version+100, &rec)
	s.conflict(t, rec)
	rec = v.see(t, "Swap", s.swap(t, rec.Version, s.completed("a")))
	s.wantDelete(t, rec.Key, rec.Version+100, idem.ErrConflict)
	s.remove(t, rec)
	s.wantDelete(t, rec.Key, rec.Version, idem.ErrNotFound)
	v.see(t, "Delete and Create", s.create(t, s.processing("a")))
}
