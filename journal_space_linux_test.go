package idem

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// TestFullDiskDuringMerge injects a bbolt file that has no room, while the journal
// has: writes go on until both segments are full, then they are ErrFull, with
// nothing written. Reads go on. When there is room again, so do writes.
func TestFullDiskDuringMerge(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	synctest.Test(t, func(t *testing.T) {
		gate := &fileGate{}
		s, err := OpenBoltStore(t.Context(), path, gate.config(t, minSegmentBytes))
		require.NoError(t, err)
		script := newDiskScript(s)
		require.NoError(t, script.run(t, 200))
		time.Sleep(time.Minute) // until nothing is being merged
		gate.full.Store(true)
		n := 0
		for ; err == nil; n++ {
			_, err = s.Create(t.Context(), completed(fmt.Sprintf("more-%d", n), faultValue(n, 900)))
			require.Less(t, n, 1000)
		}
		require.ErrorIs(t, err, ErrFull)
		require.Greater(t, n, minSegmentBytes/2000)
		require.Positive(t, gate.refused.Load())

		// One batch of small and large writes, of which nothing may be left.
		errs := make(chan error)
		for i := range 8 {
			go func() {
				_, err := s.Create(t.Context(), completed(fmt.Sprintf("mixed-%d", i), faultValue(i, 900+i%2*directBytes)))
				errs <- err
			}()
		}
		for range 8 {
			require.ErrorIs(t, <-errs, ErrFull)
		}
		script.verify(t, s)
		got := contents(t, s)
		for i := range n - 1 {
			require.Equal(t, "completed "+faultValue(i, 900), got[fmt.Sprintf("more-%d", i)])
		}
		require.NotContains(t, got, fmt.Sprintf("more-%d", n-1))
		for i := range 8 {
			require.NotContains(t, got, fmt.Sprintf("mixed-%d", i))
		}

		gate.full.Store(false)
		for i := range 8 {
			_, err := s.Create(t.Context(), completed(fmt.Sprintf("mixed-%d", i), "late"))
			require.NoError(t, err)
		}
		script.open = nil
		require.NoError(t, script.run(t, 300))
		script.verify(t, s)
		require.NoError(t, s.Close())
		require.NoFileExists(t, path+journal.Suffix)
	})
	requireSound(t, path)
}

// TestFullDiskAtClose closes and opens a store whose file has no room: Close says
// that it could not merge, opening is ErrFull, reading alone works, and with room
// nothing is lost.
func TestFullDiskAtClose(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	gate := &fileGate{}
	s := openFault(t, path, gate.config(t, minSegmentBytes))
	script := newDiskScript(s)
	require.NoError(t, script.run(t, 200))
	gate.full.Store(true)
	err := s.Close()
	require.ErrorIs(t, err, errNoSpace)
	require.FileExists(t, path+journal.Suffix)

	_, err = OpenBoltStore(t.Context(), path, gate.config(t, minSegmentBytes))
	require.ErrorIs(t, err, ErrFull)
	reader := openFault(t, path, BoltConfig{ReadOnly: true})
	script.verify(t, reader)
	require.NoError(t, reader.Close())

	gate.full.Store(false)
	s = openFault(t, path, gate.config(t, minSegmentBytes))
	script.verify(t, s)
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// TestDeletesOnFullDisk has so little room that a merge fails and a delete does
// not. While the journal is full, what is only in the file can be removed; what
// the merge would bring back cannot.
func TestDeletesOnFullDisk(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	gate := &fileGate{}
	s := openFault(t, path, gate.config(t, minSegmentBytes))
	const old = 100
	for i := range old {
		_, err := s.Create(t.Context(), completed(fmt.Sprintf("old-%d", i), faultValue(i, 500)))
		require.NoError(t, err)
	}
	e := s.engine.(*journalEngine)
	require.NoError(t, e.rotate())
	require.NoError(t, e.merge.wait())
	gate.room.Store(48 << 10)
	for n := 0; e.frozen == nil || e.log.Room() >= crashSector; n++ {
		size := 2500
		if e.frozen != nil && e.log.Room() < 4096 {
			size = 10 // a sector each, to the end
		}
		_, err := s.Create(t.Context(), completed(fmt.Sprintf("new-%d", n), faultValue(n, size)))
		require.NoError(t, err)
	}
	want := contents(t, s)
	rec, err := s.Get(t.Context(), faultKey("new-0"))
	require.NoError(t, err)
	require.ErrorIs(t, s.Delete(t.Context(), rec.Key, rec.Version), ErrFull)
	for i := range old {
		id := fmt.Sprintf("old-%d", i)
		rec, err := s.Get(t.Context(), faultKey(id))
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
		delete(want, id)
	}
	require.Positive(t, gate.refused.Load())
	require.Equal(t, want, contents(t, s))
	crashed := faultPath(t)
	readDisk(t, path).write(t, crashed)
	gate.room.Store(0)
	require.NoError(t, s.Close())
	for _, p := range []string{path, crashed} {
		s = openFault(t, p, BoltConfig{})
		require.Equal(t, want, contents(t, s))
		require.NoError(t, s.Close())
		requireSound(t, p)
	}
}
