package journal

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/torture"
)

// TestTorture appends batches of random sizes to random segments, merges now and
// then, and loses any sectors of the last batch. What was synced must be read.
func TestTorture(t *testing.T) {
	t.Parallel()
	torture.Rounds(t, 300, func(t *testing.T, random *rand.Rand) {
		l := newTestLog(t, int64(testSegment*(1+random.IntN(4))))
		live, merged, lived := 0, uint64(0), 0 // lived: batches up to the segment before this one
		for range 1 + random.IntN(60) {
			sectors := 1 + random.IntN(5)
			if l.Room() < int64(sectors*sectorSize) {
				live, merged = lived, l.Generation()-1 // the other segment must be merged before it is used
				lived = len(l.appended)
				l.Switch()
			}
			l.previous = l.content(t)
			l.add(t, sectors)
			if random.IntN(4) == 0 {
				l.tear(t, random, merged, live)
			}
		}
		l.requireRead(t, merged, l.Generation(), l.appended[live:])
	})
}

// tear requires what must be read after a crash in the last append, and then
// undoes the crash.
func (l *testLog) tear(t *testing.T, random *rand.Rand, merged uint64, live int) {
	t.Helper()
	after := l.content(t)
	end := l.segmentStart(l.active) + l.offset
	start := end - l.appended[len(l.appended)-1].Size()
	image := bytes.Clone(after)
	for off := start; off < end; off += sectorSize {
		sector := image[off : off+sectorSize]
		switch random.IntN(sectorStates) {
		case sectorOld:
			copy(sector, l.previous[off:])
		case sectorZero:
			clear(sector)
		case sectorGarbage:
			for i := range sector {
				sector[i] = byte(random.Uint32())
			}
		}
	}
	l.put(t, image)
	want := l.appended[live:]
	if !bytes.Equal(image, after) {
		want = want[:len(want)-1]
	}
	got, err := l.read(merged)
	require.NoError(t, err)
	requireBatches(t, want, got.Batches)
	l.put(t, after)
}
