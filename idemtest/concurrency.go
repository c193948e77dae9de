package idemtest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

// crowd is how many callers race in one check.
const crowd = 64

func concurrencyChecks() []check {
	return []check{
		{name: "exactly one of many Creates of a key wins", overlaps: true, run: func(t *testing.T, s *subject) { oneCreateWins(t, s) }},
		{name: "exactly one of many Creates over an expired record wins", overlaps: true, run: oneCreateOverExpiredWins},
		{name: "exactly one of many Swaps of a version wins", overlaps: true, run: oneSwapWins},
		{name: "exactly one of many Deletes of a version wins", overlaps: true, run: oneDeleteWins},
		{name: "exactly one of Swaps and Deletes of a version wins", overlaps: true, run: oneChangeWins},
		{name: "Creates of many keys all win", overlaps: true, run: allCreatesWin},
		{name: "counters on several keys lose no update", overlaps: true, run: noLostUpdate},
		{name: "creations and deletions of a key add up", overlaps: true, run: lifecyclesAddUp},
		{name: "records are read whole while they change", overlaps: true, run: wholeReads},
	}
}

// race lets many callers do the same and wants exactly one to win, the others
// to get ErrConflict, or ErrNotFound where the winner may have deleted.
func race(t *testing.T, call string, attempt func(i int) (idem.Record, error)) (winner idem.Record) {
	t.Helper()
	var mu sync.Mutex
	wins := 0
	together(crowd, func(i int) {
		rec, err := attempt(i)
		switch {
		case err == nil:
			mu.Lock()
			defer mu.Unlock()
			wins++
			winner = rec
		case !errors.Is(err, idem.ErrConflict) && !errors.Is(err, idem.ErrNotFound):
			t.Errorf("%s(%q) in a race = %s, want success or ErrConflict", call, key("a"), outcome(rec, err))
		}
	})
	if wins != 1 {
		t.Fatalf("%s(%q) succeeded for %d of %d concurrent callers, want exactly 1", call, key("a"), wins, crowd)
	}
	return winner
}

func (s *subject) mine(i int) idem.Record {
	return withValue(s.processing("a"), "caller "+strconv.Itoa(i))
}

func oneCreateWins(t *testing.T, s *subject) {
	answers := make([]idem.Record, crowd)
	winner := race(t, "Create", func(i int) (rec idem.Record, err error) {
		rec, err = s.Create(t.Context(), s.mine(i))
		answers[i] = rec
		return rec, err
	})
	s.wantRecord(t, winner)
	for _, got := range answers {
		if d := diff(got, winner); d != "" {
			t.Errorf("Create(%q) returned to a caller that lost not the winner's record: %s", winner.Key, d)
		}
	}
}

func oneCreateOverExpiredWins(t *testing.T, s *subject) {
	s.create(t, s.expired("a", time.Hour))
	oneCreateWins(t, s)
}

func oneSwapWins(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	s.wantRecord(t, race(t, "Swap", func(i int) (idem.Record, error) {
		return s.Swap(t.Context(), old.Version, s.mine(i))
	}))
}

func oneDeleteWins(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	race(t, "Delete", func(int) (idem.Record, error) {
		return old, s.Delete(t.Context(), old.Key, old.Version)
	})
	s.wantAbsent(t, old.Key)
}

func oneChangeWins(t *testing.T, s *subject) {
	old := s.create(t, s.processing("a"))
	winner := race(t, "Swap or Delete", func(i int) (idem.Record, error) {
		if i%2 == 0 {
			return old, s.Delete(t.Context(), old.Key, old.Version)
		}
		return s.Swap(t.Context(), old.Version, s.mine(i))
	})
	if winner.Version == old.Version {
		s.wantAbsent(t, old.Key)
	} else {
		s.wantRecord(t, winner)
	}
}

func allCreatesWin(t *testing.T, s *subject) {
	keys := numbered(crowd)
	stored := make([]idem.Record, len(keys))
	together(len(keys), func(i int) {
		var err error
		if stored[i], err = s.Create(t.Context(), s.completedAt(keys[i])); err != nil {
			t.Errorf("Create(%q) = %s, want success: the key is free", keys[i], outcome(stored[i], err))
		}
	})
	for _, rec := range stored {
		s.wantRecord(t, rec)
	}
}

// noLostUpdate counts up in records by Get and Swap.
func noLostUpdate(t *testing.T, s *subject) {
	const workers, rounds = 8, 4
	keys := numbered(3)
	for _, k := range keys {
		s.create(t, withValue(s.completedAt(k), "0"))
	}
	together(workers, func(w int) {
		for i := range rounds * len(keys) {
			s.increment(t, keys[(w+i)%len(keys)])
		}
	})
	for _, k := range keys {
		got, err := s.Get(t.Context(), k)
		if want := strconv.Itoa(workers * rounds); err != nil || string(got.Value) != want {
			t.Errorf("Get(%q) = %s after %s increments, want value %q", k, outcome(got, err), want, want)
		}
	}
}

func (s *subject) increment(t *testing.T, k idem.Key) {
	rec, err := s.Get(t.Context(), k)
	for err == nil {
		n, _ := strconv.Atoi(string(rec.Value)) // a value that is not a number shows in the sum
		var after idem.Record
		after, err = s.Swap(t.Context(), rec.Version, withValue(rec, strconv.Itoa(n+1)))
		if !errors.Is(err, idem.ErrConflict) {
			if err == nil && after.Version <= rec.Version {
				t.Errorf("Swap(%q) returned version %d, want more than %d", k, after.Version, rec.Version)
			}
			break
		}
		rec, err = after, nil
	}
	if err != nil {
		t.Errorf("counting up %q: %v, want success or ErrConflict", k, err)
	}
}

func lifecyclesAddUp(t *testing.T, s *subject) {
	var created, deleted atomic.Int64
	together(8, func(int) {
		for range 6 {
			rec, err := s.Create(t.Context(), s.processing("a"))
			if err == nil {
				created.Add(1)
			} else if !errors.Is(err, idem.ErrConflict) {
				t.Errorf("Create(%q) = %s, want success or ErrConflict", key("a"), outcome(rec, err))
			}
			switch err := s.Delete(t.Context(), key("a"), rec.Version); {
			case err == nil:
				deleted.Add(1)
			case !errors.Is(err, idem.ErrConflict) && !errors.Is(err, idem.ErrNotFound):
				t.Errorf("Delete(%q, version %d) = %v, want success, ErrConflict or ErrNotFound", key("a"), rec.Version, err)
			}
		}
	})
	if c, d, left := created.Load(), deleted.Load(), len(s.scan(t, idem.Query{})); c-d != int64(left) {
		t.Errorf("%d Creates and %d Deletes of %q succeeded and %d records are left, want the difference", c, d, key("a"), left)
	}
}

// uniform is a record in which fields all over carry one number, so that a mix
// of two versions shows.
func (s *subject) uniform(n int) idem.Record {
	rec := s.full("a")
	rec.Attempt, rec.ValueOmitted, rec.Value = n, int64(n), fmt.Appendf(nil, "%04000d", n)
	rec.Owner, rec.Note = strconv.Itoa(n), strconv.Itoa(n)
	return rec
}

func (s *subject) wantUniform(t *testing.T, call string, got idem.Record) {
	t.Helper()
	want := s.uniform(got.Attempt)
	want.Version, want.CreatedAt, want.StartedAt = got.Version, got.CreatedAt, got.StartedAt
	want.UpdatedAt, want.LeaseUntil, want.ExpiresAt = got.UpdatedAt, got.LeaseUntil, got.ExpiresAt
	if d := diff(got, want); d != "" {
		t.Errorf("%s returned a mix of two versions of %q: %s", call, got.Key, d)
	}
}

func wholeReads(t *testing.T, s *subject) {
	current := s.create(t, s.uniform(0))
	var finished atomic.Bool
	together(4, func(w int) {
		if w > 0 {
			s.readUniform(t, &finished)
			return
		}
		defer finished.Store(true)
		for n := 1; n <= 20; n++ {
			var err error
			if current, err = s.Swap(t.Context(), current.Version, s.uniform(n)); err != nil {
				t.Errorf("Swap(%q) = %s, want success: nobody else writes", key("a"), outcome(current, err))
				return
			}
		}
	})
}

// readUniform reads until the writer has finished.
func (s *subject) readUniform(t *testing.T, finished *atomic.Bool) {
	for last := uint64(0); !finished.Load(); time.Sleep(pollEvery) {
		got, err := s.Get(t.Context(), key("a"))
		if err != nil || got.Version < last {
			t.Errorf("Get(%q) = %s after version %d was read, want it or a later one", key("a"), outcome(got, err), last)
			return
		}
		last = got.Version
		s.wantUniform(t, "Get", got)
		for rec, err := range s.Scan(t.Context(), idem.Query{}) {
			if err != nil {
				t.Errorf("Scan yielded %s, want no error", outcome(rec, err))
				return
			}
			s.wantUniform(t, "Scan", rec)
		}
	}
}
