package idem

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// orderStep is one change of the key, or a merge of what the journal has.
type orderStep int

const (
	orderSmall  orderStep = iota // through the journal
	orderLarge                   // committed to the file at once
	orderDelete                  // through the journal
	orderMerge
	orderSteps
)

// TestDirectAndJournaled makes every series of changes of one key through the
// journal and past it, with merges in between. After each series the newest one
// must be read, also by a reader and by a writer that come after a crash.
func TestDirectAndJournaled(t *testing.T) {
	t.Parallel()
	const length = 4
	series := 1
	for range length {
		series *= int(orderSteps)
	}
	dir := t.TempDir()
	s := openFault(t, dir+"/idem.db", BoltConfig{journalAfter: -1, SegmentBytes: minSegmentBytes, CacheBytes: -1})
	e := s.engine.(*journalEngine)
	last := map[string]Record{}
	for n := range series {
		id := fmt.Sprintf("series-%d", n)
		var rec Record
		for at, code := 0, n; at < length; at, code = at+1, code/int(orderSteps) {
			rec = orderDo(t, e, s, rec, id, at, orderStep(code%int(orderSteps)))
		}
		last[id] = rec
		if n%31 != 0 && n != series-1 {
			continue
		}
		orderRequire(t, s, last)
		if e.merge != nil {
			require.NoError(t, e.merge.wait()) // else the copy could be torn
		}
		crashed := fmt.Sprintf("%s/crashed-%d.db", dir, n)
		copyFile(t, s.Path(), crashed)
		copyFile(t, s.Path()+journal.Suffix, crashed+journal.Suffix)
		for _, c := range []BoltConfig{{ReadOnly: true}, {}} {
			after := openFault(t, crashed, c)
			orderRequire(t, after, last)
			require.NoError(t, after.Close())
		}
		requireSound(t, crashed)
		last = map[string]Record{}
		for rec, err := range s.Scan(t.Context(), Query{}) { // so that the file stays small
			require.NoError(t, err)
			require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
		}
	}
	require.NoError(t, s.Close())
}

func orderDo(t *testing.T, e *journalEngine, s *BoltStore, old Record, id string, at int, step orderStep) Record {
	t.Helper()
	value := fmt.Sprintf("value %d of %s", at, id)
	switch {
	case step == orderMerge:
		if e.log != nil && e.log.Room() < minSegmentBytes {
			require.NoError(t, e.rotate())
		}
		return old
	case step == orderDelete && old.Version == 0:
		return old
	case step == orderDelete:
		require.NoError(t, s.Delete(t.Context(), old.Key, old.Version))
		return Record{}
	case step == orderLarge:
		value = faultValue(at, directBytes+at)
	}
	var err error
	rec := completed(id, value)
	if old.Version == 0 {
		rec, err = s.Create(t.Context(), rec)
	} else {
		rec, err = s.Swap(t.Context(), old.Version, rec)
	}
	require.NoError(t, err)
	return rec
}

func orderRequire(t *testing.T, s *BoltStore, want map[string]Record) {
	t.Helper()
	there := 0
	for id, rec := range want {
		got, err := s.Get(t.Context(), faultKey(id))
		if rec.Version == 0 {
			require.ErrorIs(t, err, ErrNotFound, id)
			continue
		}
		there++
		require.NoError(t, err, id)
		require.Equal(t, rec.Version, got.Version, id)
		require.Equal(t, string(rec.Value), string(got.Value), id)
	}
	require.Len(t, contents(t, s), there)
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, there, info.Records)
}

// TestExpireRacesWithJournal removes expired records beside the commits while
// their keys are taken again: one winner per key, none is lost, and the totals are
// right in the end.
func TestExpireRacesWithJournal(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	s := openFault(t, path, BoltConfig{journalAfter: -1, SegmentBytes: minSegmentBytes, Grace: -1})
	const keys, rounds, callers = 40, 30, 4
	var removed atomic.Int64
	for round := range rounds {
		for i := range keys { // expired, most of them merged into the file
			rec := completed(fmt.Sprintf("k%d", i), faultValue(i, 300))
			rec.ExpiresAt = rec.CreatedAt.Add(-time.Duration(i) * time.Second)
			old, err := s.Create(t.Context(), rec)
			if errors.Is(err, ErrConflict) {
				_, err = s.Swap(t.Context(), old.Version, rec)
			}
			require.NoError(t, err)
		}
		e := s.engine.(*journalEngine)
		if round%3 > 0 {
			require.NoError(t, e.rotate())
			require.NoError(t, e.merge.wait())
		}
		var won [keys]atomic.Int64
		var working sync.WaitGroup
		for range callers {
			working.Go(func() {
				for i := range keys {
					_, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", i), "new"))
					switch {
					case err == nil:
						won[i].Add(1)
					case !errors.Is(err, ErrConflict):
						t.Errorf("Create: %v", err)
					}
				}
			})
		}
		working.Go(func() {
			for range 5 {
				n, err := s.Expire(t.Context(), 7)
				if err != nil {
					t.Errorf("Expire: %v", err)
				}
				removed.Add(int64(n))
			}
		})
		working.Wait()
		for i := range keys {
			require.EqualValues(t, 1, won[i].Load(), "round %d, key %d", round, i)
		}
		info, err := s.Info(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, keys, info.Records, "round %d", round)
		require.Len(t, contents(t, s), keys)
	}
	require.Positive(t, removed.Load())
	records, size := s.engine.totals()
	require.NoError(t, s.Close())
	s = openFault(t, path, BoltConfig{})
	recordsAgain, sizeAgain := s.engine.totals()
	require.Equal(t, records, recordsAgain)
	require.Equal(t, size, sizeAgain)
	require.NoError(t, s.Close())
	requireSound(t, path)
}
