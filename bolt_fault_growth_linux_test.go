package idem

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// TestSteadyLoadAfterPurge: in a file from which 95 of 100 records were removed,
// a commit must write no more than in a small file. A list of the thousand free
// pages, which bbolt keeps by default, would add a seventh here, and grow.
func TestSteadyLoadAfterPurge(t *testing.T) {
	t.Parallel()
	const kept, commits = 150, 100
	perCommit := func(records int) int64 {
		var written int64
		s := openFault(t, faultPath(t), BoltConfig{
			journalAfter: 1 << 30, // commits of the file are measured
			tap: func(file *boltEngine, _ *journal.Config) {
				file.db.NoSync = true // for speed
				hookWrites(t, file.db, func(next pwrite, b []byte, off int64) (int, error) {
					written += int64(len(b))
					return next(b, off)
				})
			},
		})
		for i := range records {
			_, err := s.Create(t.Context(), completed(fmt.Sprintf("%08x", crashHash(fmt.Sprint(i))), faultValue(i, 500)))
			require.NoError(t, err)
		}
		for i := kept; i < records; i++ {
			rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("%08x", crashHash(fmt.Sprint(i)))))
			require.NoError(t, err)
			require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
		}
		written = 0
		for i := range commits {
			_, err := s.Create(t.Context(), completed(fmt.Sprintf("new-%d", i), faultValue(i, 500)))
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		return written / commits
	}
	fresh, purged := perCommit(kept), perCommit(20*kept)
	t.Logf("%d bytes in a small file, %d in a purged one", fresh, purged)
	require.Positive(t, fresh)
	require.Less(t, purged, fresh+fresh/10)
}

// TestSlowReaderWhileGrowing holds a read transaction of bbolt while the file
// grows to several times its size: neither writers nor other readers may wait
// for it.
func TestSlowReaderWhileGrowing(t *testing.T) {
	t.Parallel()
	s := openFault(t, faultFile(t, 1, 10), BoltConfig{})
	slow, err := s.db.Begin(false)
	require.NoError(t, err)
	grown := make(chan error, 1)
	go func() {
		for i := range 100 {
			_, err := s.Create(t.Context(), completed(fmt.Sprintf("new-%d", i), faultValue(i, directBytes)))
			if err == nil {
				_, err = s.Get(t.Context(), faultKey("k0"))
			}
			if err != nil {
				grown <- err
				return
			}
		}
		grown <- nil
	}()
	select {
	case err = <-grown:
	case <-time.After(time.Minute):
		t.Error("a slow reader stands in the way of everybody")
	}
	require.NoError(t, err)
	require.NoError(t, slow.Rollback())
	require.NoError(t, s.Close())
}
