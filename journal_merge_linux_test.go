package idem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// fileGate stands between a store and its bbolt file: while it is closed, writes
// of that file wait, while it is full, they fail. The journal is not affected.
type fileGate struct {
	closed  chan struct{} // nil: open
	full    atomic.Bool
	room    atomic.Int64 // what a transaction may write; 0: anything
	spent   int64        // of it
	refused atomic.Int64
	waiting atomic.Int64
}

// config forces the journal.
func (g *fileGate) config(t *testing.T, segmentBytes int64) BoltConfig {
	return BoltConfig{LockTimeout: -1, CacheBytes: -1, Grace: -1, SegmentBytes: segmentBytes, journalAfter: -1,
		tap: func(file *boltEngine, c *journal.Config) {
			file.db.NoSync = true // for speed
			c.Sync = func(*os.File) error { return nil }
			hookWrites(t, file.db, func(next pwrite, b []byte, off int64) (int, error) {
				if g.closed != nil {
					g.waiting.Add(1)
					<-g.closed
				}
				g.spent += int64(len(b))
				if room := g.room.Load(); g.full.Load() || room > 0 && g.spent > room {
					g.refused.Add(1)
					g.spent = 0
					return 0, unix.ENOSPC
				}
				if off < int64(2*os.Getpagesize()) {
					g.spent = 0
				}
				return next(b, off)
			})
		}}
}

// TestBackPressure holds the merge: writers go on until both segments are full,
// then they wait, and none of them is refused.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	synctest.Test(t, func(t *testing.T) {
		gate := &fileGate{closed: make(chan struct{})}
		s, err := OpenBoltStore(t.Context(), path, gate.config(t, minSegmentBytes))
		require.NoError(t, err)
		const records = 400
		var done atomic.Int64
		errs := make(chan error, records)
		for i := range records {
			go func() {
				_, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", i), faultValue(i, 1000)))
				done.Add(1)
				errs <- err
			}()
		}
		synctest.Wait()
		written := done.Load()
		require.Greater(t, written, int64(minSegmentBytes/2000), "the second segment was to be used meanwhile")
		require.Less(t, written, int64(2*minSegmentBytes/1000))
		require.Positive(t, gate.waiting.Load())
		for i := range records { // readers do not wait
			rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("k%d", i)))
			if errors.Is(err, ErrNotFound) {
				continue
			}
			require.NoError(t, err)
			require.Equal(t, faultValue(i, 1000), string(rec.Value))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = s.Create(ctx, completed("late", "v"))
		require.ErrorIs(t, err, context.DeadlineExceeded, "whoever waits can give up")
		close(gate.closed)
		for range records {
			require.NoError(t, <-errs)
		}
		require.Len(t, contents(t, s), records)
		require.NoError(t, s.Close())
	})
	requireSound(t, path)
}

// TestCloseWhileMerging closes a store whose merge is held for a while.
func TestCloseWhileMerging(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	script := &diskScript{}
	synctest.Test(t, func(t *testing.T) {
		gate := &fileGate{closed: make(chan struct{})}
		s, err := OpenBoltStore(t.Context(), path, gate.config(t, minSegmentBytes))
		require.NoError(t, err)
		script = newDiskScript(s)
		require.NoError(t, script.run(t, 49)) // before its first large value
		for i := 0; gate.waiting.Load() == 0; i++ {
			_, err := s.Create(t.Context(), completed(fmt.Sprintf("more-%d", i), faultValue(i, 500)))
			require.NoError(t, err)
			synctest.Wait()
		}
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait for the merge: %v", err)
		default:
		}
		close(gate.closed)
		require.NoError(t, <-closed)
		require.NoFileExists(t, path+journal.Suffix)
	})
	s := openFault(t, path, BoltConfig{})
	script.verify(t, s)
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// TestScanOverOverlays has more records than a page takes in the file and in both
// overlays, so that a page ends in the middle of any of them.
func TestScanOverOverlays(t *testing.T) {
	t.Parallel()
	for _, every := range [][3]int{{3, 2, 5}, {3, 5, 2}, {2, 3, 3}, {1, 100, 2}, {100, 1, 4}} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			t.Parallel()
			scanOverOverlays(t, every)
		})
	}
}

// scanOverOverlays puts every so manieth key into the file and the two overlays.
func scanOverOverlays(t *testing.T, every [3]int) {
	const records = 6 * scanPageSize
	gate := &fileGate{}
	s := openFault(t, filepath.Join(crashDir(t), "idem.db"), gate.config(t, minSegmentBytes<<5))
	e := s.engine.(*journalEngine)
	want := map[string]string{}
	put := func(step int, value string) {
		for i := 0; i < records; i += step {
			id := fmt.Sprintf("%05d", i)
			old, err := s.Create(t.Context(), completed(id, value))
			if errors.Is(err, ErrConflict) {
				_, err = s.Swap(t.Context(), old.Version, completed(id, value))
			}
			require.NoError(t, err)
			want[id] = "completed " + value
		}
	}
	put(every[0], "file")
	require.NoError(t, e.rotate())
	require.NoError(t, e.merge.wait())
	gate.closed = make(chan struct{}) // nothing writes now
	put(every[1], "frozen")
	require.NoError(t, e.rotate())
	put(every[2], "active")
	for i := 0; i < records; i += 7 {
		if rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("%05d", i))); err == nil {
			require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
			delete(want, rec.Key.ID)
		}
	}
	require.Greater(t, len(want), 2*scanPageSize)
	require.Equal(t, want, contents(t, s))
	close(gate.closed)
	require.NoError(t, e.merge.wait())
	require.Equal(t, want, contents(t, s))
	require.NoError(t, s.Close())
}

// TestDueOverOverlays: expired records are removed oldest first, wherever they
// are.
func TestDueOverOverlays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := &fileGate{}
		s, err := OpenBoltStore(t.Context(), faultPath(t), gate.config(t, minSegmentBytes<<4))
		require.NoError(t, err)
		e := s.engine.(*journalEngine)
		const records = 600
		for i := range records { // the file has the first half, the overlays the others, which expire later
			rec := completed(fmt.Sprint(i), "v")
			rec.ExpiresAt = rec.CreatedAt.Add(time.Duration(1+(i*7)%records+i/(records/2+1)*records) * time.Second)
			_, err := s.Create(t.Context(), rec)
			require.NoError(t, err)
			if i == records/2 {
				require.NoError(t, e.rotate())
				require.NoError(t, e.merge.wait())
				gate.closed = make(chan struct{})
			}
			if i == records*3/4 {
				require.NoError(t, e.rotate())
			}
		}
		for i := 0; i < records/2; i += 2 { // the file's entries of these mean nothing now
			old, err := s.Get(t.Context(), faultKey(fmt.Sprint(i)))
			require.NoError(t, err)
			rec := completed(fmt.Sprint(i), "later")
			rec.ExpiresAt = old.ExpiresAt.Add(records / 3 * time.Second)
			_, err = s.Swap(t.Context(), old.Version, rec)
			require.NoError(t, err)
		}
		time.Sleep(3 * records * time.Second)
		var last uint64
		var after []byte
		seen := 0
		for {
			page, err := e.due(span{to: s.clock.Now()}, after, 50)
			require.NoError(t, err)
			for _, entry := range page {
				at := binary.BigEndian.Uint64(entry)
				require.GreaterOrEqual(t, at, last)
				last = at
				seen++
			}
			if len(page) < 50 {
				break
			}
			after = page[len(page)-1]
		}
		require.Equal(t, records, seen)
		close(gate.closed)
		require.NoError(t, e.merge.wait())
		removed, err := s.Expire(t.Context(), 2*records)
		require.NoError(t, err)
		require.Equal(t, records, removed)
		require.Empty(t, contents(t, s))
		require.NoError(t, s.Close())
	})
}
