package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func isTyped(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrForeign) || errors.Is(err, ErrFormat)
}

// TestHeader damages the header in every bit and gives it other meanings.
func TestHeader(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, testSegment)
	l.add(t, 2)
	whole := l.content(t)
	for bit := range 8 * headerUsed {
		data := bytes.Clone(whole)
		data[bit/8] ^= 1 << (bit % 8)
		l.put(t, data)
		_, err := l.read(0)
		require.True(t, isTyped(err), "bit %d: %v", bit, err)
	}
	resum := func(data []byte) {
		binary.BigEndian.PutUint32(data[12:], checksum(0, data[16:headerUsed]))
	}
	tests := []struct {
		name   string
		change func(data []byte) []byte
		want   error
	}{
		{"empty", func([]byte) []byte { return nil }, ErrCorrupt},
		{"cut in the header", func(d []byte) []byte { return d[:headerUsed-1] }, ErrCorrupt},
		{"only a header", func(d []byte) []byte { return d[:headerSize] }, ErrCorrupt},
		{"cut by a byte", func(d []byte) []byte { return d[:len(d)-1] }, ErrCorrupt},
		{"a byte too long", func(d []byte) []byte { return append(d, 0) }, ErrCorrupt},
		{"something else", func(d []byte) []byte { copy(d, "SQLite format 3"); return d }, ErrForeign},
		{"a later format", func(d []byte) []byte { d[11] = 2; return d }, ErrFormat},
		{"another store", func(d []byte) []byte { d[20] ^= 1; resum(d); return d }, ErrForeign},
		{"segments of no bytes", func(d []byte) []byte { clear(d[32:40]); resum(d); return d }, ErrCorrupt},
		{"segments of another size", func(d []byte) []byte { d[38] ^= 1; resum(d); return d }, ErrCorrupt},
		{"huge segments", func(d []byte) []byte { d[32] = 0x7f; resum(d); return d }, ErrCorrupt},
		{"negative segments", func(d []byte) []byte { d[32] = 0xff; resum(d); return d }, ErrCorrupt},
		{"segments whose sum wraps to the file's size", func(d []byte) []byte { d[32] ^= 0x80; resum(d); return d }, ErrCorrupt},
	}
	for _, tt := range tests {
		l.put(t, tt.change(bytes.Clone(whole)))
		_, err := l.read(0)
		require.ErrorIs(t, err, tt.want, tt.name)
		require.ErrorContains(t, err, l.path, tt.name)
	}
}

// TestSegmentSizeOfTheFile: a journal is read by its own segment size, whatever
// the configuration says.
func TestSegmentSizeOfTheFile(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, testSegment)
	l.add(t, 2)
	l.config.SegmentBytes = 1 << 20
	l.requireRead(t, 0, 1, l.appended)
}

// TestGenerationGap: an old copy of the store is behind the journal, and nothing
// of the journal may be applied to it.
func TestGenerationGap(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, testSegment)
	for range 5 {
		l.add(t, 3)
		l.add(t, 1)
		l.Switch()
	}
	for merged := range uint64(7) {
		got, err := l.read(merged)
		if merged < 3 {
			require.ErrorIs(t, err, ErrForeign, "merged %d", merged)
			require.Empty(t, got.Batches)
			continue
		}
		require.NoError(t, err)
		requireBatches(t, l.appended[min(2*merged, 10):], got.Batches)
		require.Equal(t, max(5, merged), got.Generation)
	}
}

// TestFirstGeneration: a new journal goes on after what is merged.
func TestFirstGeneration(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, testSegment)
	next, err := Create(l.path, l.config, 41)
	require.NoError(t, err)
	require.EqualValues(t, 42, next.Generation())
	require.NoError(t, next.Append(Batch{State: []byte("s")}))
	require.NoError(t, next.Close())
	got, err := l.read(41)
	require.NoError(t, err)
	require.Len(t, got.Batches, 1)
	_, err = l.read(40)
	require.ErrorIs(t, err, ErrForeign)
	got, err = l.read(42)
	require.NoError(t, err)
	require.Empty(t, got.Batches)
}
