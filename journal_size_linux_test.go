package idem

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// fillSegments writes records of that size until both segments are full and
// returns how many.
func fillSegments(t *testing.T, s *BoltStore, valueBytes int) (records int) {
	t.Helper()
	e := s.engine.(*journalEngine)
	one := func(i int) *batch {
		rec := completed(fmt.Sprintf("%016x-%019d", uint64(i)*0x9E3779B97F4A7C15, i), faultValue(i, valueBytes))
		rec.Version = uint64(i + 1)
		key := []byte(rec.Key.String())
		return &batch{
			state:   storeState{version: rec.Version, clock: time.Now()},
			changes: []change{{key: key, enc: encodeRecord(key, &rec), version: rec.Version, fresh: true}},
		}
	}
	const group = 64
	for {
		b := one(records)
		for i := 1; i < group; i++ {
			next := one(records + i)
			b.changes, b.state = append(b.changes, next.changes...), next.state
		}
		if e.log != nil && e.frozen != nil && e.log.Room() < b.journalBatch(0).Size() {
			return records
		}
		require.NoError(t, e.commit(b))
		records += group
	}
}

// TestOverlayMemory measures what two full overlays take: at most this many times
// the bytes of the two segments, with records as small as claims are.
func TestOverlayMemory(t *testing.T) {
	const factor = 3
	gate := &fileGate{closed: make(chan struct{})}
	s := openFault(t, filepath.Join(crashDir(t), "idem.db"), gate.config(t, defaultSegmentBytes))
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	records := fillSegments(t, s, 40)
	e := s.engine.(*journalEngine)
	e.overlaidAfter("", "", 1<<30) // sorted keys take memory too
	taken := float64(heap()-before) / (2 * defaultSegmentBytes)
	t.Logf("%d records take %.2f times the segments", records, taken)
	require.Less(t, taken, float64(factor))
	require.Greater(t, taken, 0.5, "it was not measured")
	runtime.KeepAlive(s)
	close(gate.closed)
	require.NoError(t, s.Close())
}

// TestRecoveryTime recovers two full segments. The best of a few tries counts:
// the machine may be busy with something else.
func TestRecoveryTime(t *testing.T) {
	path := filepath.Join(crashDir(t), "idem.db")
	gate := &fileGate{closed: make(chan struct{})}
	s := openFault(t, path, gate.config(t, defaultSegmentBytes))
	records := fillSegments(t, s, 300)
	crashed := readDisk(t, path)
	close(gate.closed)
	require.NoError(t, s.Close())

	best := time.Hour
	for try := 0; try < 10 && best >= time.Second; try++ {
		crashed.write(t, path)
		began := time.Now()
		s = openFault(t, path, BoltConfig{})
		best = min(best, time.Since(began)/raceSlowdown)
		require.NoFileExists(t, path+journal.Suffix)
		info, err := s.Info(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, records, info.Records)
		require.NoError(t, s.Close())
	}
	t.Logf("%d records in %s", records, best)
	require.Less(t, best, time.Second)
	requireSound(t, path)
}
