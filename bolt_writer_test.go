package idem

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	bolt "go.etcd.io/bbolt"

	"github.com/stretchr/testify/require"
)

// TestBatch holds the writer in one commit while many callers queue: all of
// them must share the next commit, and a refused one among them must not keep
// the others from being written.
func TestBatch(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	synctest.Test(t, func(t *testing.T) {
		const callers = 200
		gate, commits := make(chan struct{}), 0
		s, err := OpenBoltStore(t.Context(), path, aroundCommits(func(commit func() error) error {
			commits++
			<-gate
			return commit()
		}))
		require.NoError(t, err)
		errs := make(chan error, callers+1)
		create := func(id string) {
			_, err := s.Create(t.Context(), completed(id, id))
			errs <- err
		}
		go create("first")
		synctest.Wait() // the first commit is held at the gate
		for i := range callers {
			go create(fmt.Sprint(i / 2)) // each id twice: one of the two is refused
		}
		synctest.Wait()
		close(gate)
		synctest.Wait()
		require.Equal(t, 2, commits)
		refused := 0
		for range callers + 1 {
			if err := <-errs; err != nil {
				require.ErrorIs(t, err, ErrConflict)
				refused++
			}
		}
		require.Equal(t, callers/2, refused)
		require.Len(t, contents(t, s), callers/2+1)
		require.NoError(t, s.Close())
	})
	requireSound(t, path)
}

// txid is the id of the newest transaction in the file.
func txid(t *testing.T, s *BoltStore) (id int) {
	t.Helper()
	require.NoError(t, s.db.View(func(tx *bolt.Tx) error { id = tx.ID(); return nil }))
	return id
}

// TestIdleRoundsWriteNothing: an Expire that finds nothing, a janitor with
// nothing to do, reads, replays and refusals must not commit.
func TestIdleRoundsWriteNothing(t *testing.T) {
	t.Parallel()
	path := faultFile(t, 3, 10)
	synctest.Test(t, func(t *testing.T) {
		s, err := OpenBoltStore(t.Context(), path, BoltConfig{})
		require.NoError(t, err)
		before := txid(t, s)
		rounds := make(chan error, 100)
		j, err := StartJanitor(s, JanitorConfig{OnRound: func(removed int, err error) {
			if removed != 0 {
				err = fmt.Errorf("%d removed", removed)
			}
			rounds <- err
		}})
		require.NoError(t, err)
		for range 10 {
			require.NoError(t, <-rounds)
		}
		require.NoError(t, j.Close())
		rec, err := s.Create(t.Context(), completed("k0", "again"))
		require.ErrorIs(t, err, ErrConflict)
		_, err = s.Swap(t.Context(), rec.Version+1, completed("k0", "again"))
		require.ErrorIs(t, err, ErrConflict)
		require.ErrorIs(t, s.Delete(t.Context(), faultKey("none"), 1), ErrNotFound)
		require.Equal(t, before, txid(t, s))

		require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
		require.Equal(t, before+1, txid(t, s), "a write is seen by this measure")
		require.NoError(t, s.Close())
	})
}

// boltEngineOf is the engine of the bbolt file, whatever lies over it.
func boltEngineOf(s *BoltStore) *boltEngine {
	switch e := s.engine.(type) {
	case *journalEngine:
		return e.file
	case *faultEngine:
		return boltEngineOf(&BoltStore{engine: e.engine})
	default:
		return e.(*boltEngine)
	}
}

// TestViewWaitsForTheSync injects the moment between the write of a meta page
// and its sync, by holding the engine's durable mark back: a reader must not be
// shown the transaction until the mark moves.
func TestViewWaitsForTheSync(t *testing.T) {
	t.Parallel()
	s := openFault(t, faultFile(t, 1, 10), BoltConfig{})
	e := boltEngineOf(s)
	newest := int64(txid(t, s))
	e.writing.Lock() // as a commit does
	e.durable.Store(newest - 1)
	began := e.db.Stats().TxN
	var shown atomic.Bool
	ended := make(chan error)
	go func() {
		ended <- e.get([]byte(faultKey("k0").String()), func([]byte) error {
			shown.Store(true)
			return nil
		})
	}()
	for stats := e.db.Stats(); stats.TxN == began || stats.OpenTxN > 0; { // until its first look has ended
		stats = e.db.Stats()
	}
	require.False(t, shown.Load(), "the reader was shown a transaction that is not durable")
	e.durable.Store(newest)
	e.writing.Unlock()
	require.NoError(t, <-ended)
	require.True(t, shown.Load())
}
