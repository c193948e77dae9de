package idem

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBatchesOfAnySize lets callers write so much at once that no segment takes
// it, in one batch or in one operation.
func TestBatchesOfAnySize(t *testing.T) {
	t.Parallel()
	sizes := map[string]func(i int) int{
		"small":                       func(int) int { return 10 },
		"half of what goes past it":   func(int) int { return directBytes / 2 },
		"just not past it":            func(int) int { return directBytes - 300 },
		"around what goes past it":    func(i int) int { return directBytes - 400 + 10*i },
		"past it and small, in turns": func(i int) int { return 100 + i%2*directBytes },
	}
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			synctest.Test(t, func(t *testing.T) {
				const callers = 80
				s, err := OpenBoltStore(t.Context(), path, BoltConfig{journalAfter: -1, SegmentBytes: minSegmentBytes, Grace: -1, CacheBytes: -1})
				require.NoError(t, err)
				errs := make(chan error)
				for i := range callers {
					go func() {
						rec := completed(fmt.Sprintf("k%d", i), faultValue(i, size(i)))
						rec.ExpiresAt = rec.CreatedAt.Add(time.Hour)
						_, err := s.Create(t.Context(), rec)
						errs <- err
					}()
				}
				for range callers {
					require.NoError(t, <-errs)
				}
				for i := range callers {
					rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("k%d", i)))
					require.NoError(t, err)
					require.Equal(t, faultValue(i, size(i)), string(rec.Value))
				}
				require.NoError(t, s.Close())
			})
			requireSound(t, path)
		})
	}
}

// TestManyRemovalsAtOnce removes more keys in one operation than a segment has
// room for.
func TestManyRemovalsAtOnce(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	s := openFault(t, path, BoltConfig{journalAfter: -1, SegmentBytes: minSegmentBytes, Grace: -1})
	const records = 700
	long := faultValue(0, 180)
	for i := range records {
		rec := completed(fmt.Sprintf("%s-%d", long, i), "")
		rec.ExpiresAt = rec.CreatedAt.Add(-time.Second)
		_, err := s.Create(t.Context(), rec)
		require.NoError(t, err)
	}
	n, err := s.Expire(t.Context(), 10*records)
	require.NoError(t, err)
	require.Equal(t, records, n)
	require.Empty(t, contents(t, s))
	require.NoError(t, s.Close())
	s = openFault(t, path, BoltConfig{})
	require.Empty(t, contents(t, s))
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// TestLedgerInJournal: counts join whatever batch comes next, also one that goes
// past the journal and one that no segment takes.
func TestLedgerInJournal(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ notes, valueBytes int }{
		"journaled":            {1, 10},
		"past it":              {1, directBytes},
		"larger than segments": {ledgerKeys, 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			s := openFault(t, path, BoltConfig{journalAfter: -1, SegmentBytes: minSegmentBytes})
			_, err := s.Create(t.Context(), completed("k0", "v"))
			require.NoError(t, err)
			for i := range tt.notes {
				s.RecordEvent(Event{Kind: EventReplayed, Key: faultKey(fmt.Sprintf("k%d", i)), Count: 1})
			}
			_, err = s.Create(t.Context(), completed("next", faultValue(0, tt.valueBytes)))
			require.NoError(t, err)
			require.NoError(t, s.Close())
			s = openFault(t, path, BoltConfig{})
			rec, err := s.Get(t.Context(), faultKey("k0"))
			require.NoError(t, err)
			require.EqualValues(t, 1, rec.Replays)
			history, err := s.History(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, tt.notes, history[len(history)-1].Events[EventReplayed])
			require.NoError(t, s.Close())
			requireSound(t, path)
		})
	}
}

// TestStateOfEarlierBuild: a file of the build that had no journal lacks one
// number in its state.
func TestStateOfEarlierBuild(t *testing.T) {
	t.Parallel()
	at := func(sec int64) time.Time { return time.Unix(sec, 0).UTC() }
	for _, downtimes := range [][]span{nil, {{at(1), at(2)}}, {{at(1), at(2)}, {at(3), at(4)}}} {
		want := storeState{version: 7, clock: at(9), servedUntil: at(8), records: 3, bytes: 400, downtimes: downtimes}
		enc := want.encode()
		got, err := decodeStoreState(enc)
		require.NoError(t, err)
		require.Equal(t, want, got)
		got, err = decodeStoreState(append(append([]byte{}, enc[:40]...), enc[48:]...))
		require.NoError(t, err)
		require.Equal(t, want, got)
		for _, n := range []int{0, 8, 39, 41, len(enc) - 1} {
			_, err = decodeStoreState(enc[:n])
			require.ErrorIs(t, err, ErrCorrupt, "%d bytes", n)
		}
	}
}

// TestCountsBeforeMerge: notes and history are seen whether they are merged or
// not, and the note of a removed record is never that of its successor.
func TestCountsBeforeMerge(t *testing.T) {
	t.Parallel()
	s := openFault(t, faultPath(t), WithJournal(BoltConfig{CacheBytes: -1}))
	e := s.engine.(*journalEngine)
	replays := func(key Key) uint64 {
		rec, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		return rec.Replays
	}
	counted := func() (n uint64) {
		history, err := s.History(t.Context())
		require.NoError(t, err)
		for _, h := range history {
			n += h.Events[EventReplayed]
		}
		return n
	}
	others := 0
	commit := func() { // takes the ledger along
		others++
		s.ledger.mu.Lock()
		s.ledger.lastTaken = time.Time{}
		s.ledger.mu.Unlock()
		_, err := s.Create(t.Context(), completed(fmt.Sprintf("other-%d", others), "v"))
		require.NoError(t, err)
	}
	merge := func() {
		require.NoError(t, e.rotate())
		require.NoError(t, e.merge.wait())
	}
	rec, err := s.Create(t.Context(), completed("k", "v"))
	require.NoError(t, err)
	total := uint64(0)
	for round := range uint64(4) {
		s.RecordEvent(Event{Kind: EventReplayed, Key: rec.Key, Count: 1})
		commit()
		total++
		require.Equal(t, round+1, replays(rec.Key))
		require.Equal(t, total, counted())
		if round%2 == 0 {
			merge()
			require.Equal(t, round+1, replays(rec.Key))
			require.Equal(t, total, counted())
		}
	}
	for _, merged := range []bool{false, true} {
		require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
		rec, err = s.Create(t.Context(), completed("k", "again"))
		require.NoError(t, err)
		require.Zero(t, replays(rec.Key))
		if merged {
			merge()
			require.Zero(t, replays(rec.Key))
		}
		s.RecordEvent(Event{Kind: EventReplayed, Key: rec.Key, Count: 1})
		commit()
		require.EqualValues(t, 1, replays(rec.Key))
	}
	require.NoError(t, s.Close())
}
