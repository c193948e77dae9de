package idemtest

import (
	"testing"

	"github.com/idembolt/idem"
)

// sliceChecks change the value of a record after a call, which must not change
// what is stored.
func sliceChecks() []check {
	return []check{
		{name: "value given to Create is copied", run: sliceGivenToCreate},
		{name: "value given to Swap is copied", run: sliceGivenToSwap},
		{name: "value returned by Create is a copy", run: sliceFromCreate},
		{name: "value returned by Swap is a copy", run: sliceFromSwap},
		{name: "value returned by Get is a copy", run: sliceFromGet},
		{name: "value returned beside ErrConflict by Create is a copy", run: sliceFromCreateConflict},
		{name: "value returned beside ErrConflict by Swap is a copy", run: sliceFromSwapConflict},
		{name: "value yielded by Scan is a copy", run: sliceFromScan},
	}
}

const kept = "kept"

// scribble overwrites a value in place.
func scribble(value []byte) {
	for i := range value {
		value[i] = '#'
	}
}

// wantKept checks that the stored value is still the one that was written. It
// reads twice, in case the first read fills a cache.
func (s *subject) wantKept(t *testing.T, changed string) {
	t.Helper()
	for range 2 {
		got, err := s.Get(t.Context(), key("a"))
		if err != nil || string(got.Value) != kept {
			t.Errorf("Get(%q) = %s after the slice %s was changed, want value %q", key("a"), outcome(got, err), changed, kept)
		}
	}
}

func sliceGivenToCreate(t *testing.T, s *subject) {
	rec := withValue(s.completed("a"), kept)
	s.create(t, rec)
	scribble(rec.Value)
	s.wantKept(t, "given to Create")
}

func sliceGivenToSwap(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	rec := withValue(s.completed("a"), kept)
	s.swap(t, old.Version, rec)
	scribble(rec.Value)
	s.wantKept(t, "given to Swap")
}

func sliceFromCreate(t *testing.T, s *subject) {
	scribble(s.create(t, withValue(s.completed("a"), kept)).Value)
	s.wantKept(t, "returned by Create")
}

func sliceFromSwap(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	scribble(s.swap(t, old.Version, withValue(s.completed("a"), kept)).Value)
	s.wantKept(t, "returned by Swap")
}

func sliceFromGet(t *testing.T, s *subject) {
	s.create(t, withValue(s.completed("a"), kept))
	for range 2 {
		got, err := s.Get(t.Context(), key("a"))
		if err != nil {
			t.Fatalf("Get(%q) = %v, want the record", key("a"), err)
		}
		scribble(got.Value)
	}
	s.wantKept(t, "returned by Get")
}

func sliceFromCreateConflict(t *testing.T, s *subject) {
	s.create(t, withValue(s.completed("a"), kept))
	got, _ := s.Create(t.Context(), s.completed("a"))
	scribble(got.Value)
	s.wantKept(t, "returned by Create beside ErrConflict")
}

func sliceFromSwapConflict(t *testing.T, s *subject) {
	rec := s.create(t, withValue(s.completed("a"), kept))
	got, _ := s.Swap(t.Context(), rec.Version+1, s.completed("a"))
	scribble(got.Value)
	s.wantKept(t, "returned by Swap beside ErrConflict")
}

func sliceFromScan(t *testing.T, s *subject) {
	s.create(t, withValue(s.completed("a"), kept))
	for _, rec := range s.scan(t, idem.Query{}) {
		scribble(rec.Value)
	}
	s.wantKept(t, "yielded by Scan")
}
