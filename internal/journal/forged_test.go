package journal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForgedBatch stores a value that is a batch, just as the next one of the
// segment's next use will be. When the segment is used again it may be taken for
// nothing: not for a batch, nor for damage.
func TestForgedBatch(t *testing.T) {
	t.Parallel()
	for _, seeded := range []bool{false, true} {
		l := newTestLog(t, testSegment)
		seed := uint32(0)
		if seeded {
			seed = l.Journal.config.seed // which nobody knows outside: proof that the forgery is a good one
		}
		forged := Batch{State: []byte("forged"), generation: 3, sequence: 4}.encode(nil, seed)
		header := batchHeaderSize + entryHeaderSize
		b := Batch{State: []byte{}, Entries: []Entry{{Key: make([]byte, sectorSize-header), Value: forged}}}
		for range 2 {
			require.NoError(t, l.Append(b))
			l.Switch()
		}
		last := l.add(t, 1) // sequence 3, over the first one
		got, err := l.read(2)
		if seeded {
			require.NoError(t, err)
			require.Len(t, got.Batches, 2, "the forged one would have been taken")
			continue
		}
		require.NoError(t, err)
		requireBatches(t, []Batch{last}, got.Batches)
	}
}
