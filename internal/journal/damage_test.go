package journal

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDamagedBatch: no single flipped bit and no missing end goes unnoticed.
func TestDamagedBatch(t *testing.T) {
	t.Parallel()
	b := Batch{
		State:      []byte("state"),
		Entries:    []Entry{{Key: []byte("a"), Version: 1, Value: []byte("value")}, {Key: []byte("b"), Version: 2, Mark: true}},
		generation: 3, sequence: 9,
	}
	enc := b.encode(nil, testSeed)
	got, size, ok := decodeBatch(enc, testSeed)
	require.True(t, ok)
	require.Equal(t, b, got)
	require.EqualValues(t, sectorSize, size)
	length := batchHeaderSize + len("state") + 2*entryHeaderSize + len("avalueb")
	for bit := range 8 * length {
		damaged := bytes.Clone(enc)
		damaged[bit/8] ^= 1 << (bit % 8)
		_, _, ok := decodeBatch(damaged, testSeed)
		require.False(t, ok, "bit %d of byte %d", bit%8, bit/8)
	}
	for n := range length {
		_, _, ok := decodeBatch(enc[:n], testSeed)
		require.False(t, ok, "cut to %d bytes", n)
	}
}

// The states that a crash may leave a sector in that was not yet synced.
const (
	sectorNew = iota
	sectorOld
	sectorZero
	sectorGarbage
	sectorStates
)

// eachState calls fn with every state of the sectors between the old and the new
// content of a part of the file.
func eachState(old, new []byte, fn func(image []byte)) {
	random := rand.New(rand.NewPCG(1, 2))
	sectors := len(new) / sectorSize
	total := 1
	for range sectors {
		total *= sectorStates
	}
	for n := range total {
		image := bytes.Clone(new)
		for s := range sectors {
			sector := image[s*sectorSize : (s+1)*sectorSize]
			switch n % sectorStates {
			case sectorOld:
				copy(sector, old[s*sectorSize:])
			case sectorZero:
				clear(sector)
			case sectorGarbage:
				for i := range sector {
					sector[i] = byte(random.Uint32())
				}
			}
			n /= sectorStates
		}
		fn(image)
	}
}

// TestTornTail tries every state of the sectors of the last batch, in a fresh
// segment and in used ones whose old batches begin at the same places as the new
// ones and elsewhere.
func TestTornTail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		old, new []int // sectors of the batches that were there, and of the new ones
	}{
		{"fresh, only batch", nil, []int{4}},
		{"fresh, third batch", nil, []int{1, 2, 4}},
		{"used, first batch over single ones", []int{1, 1, 1, 1, 1, 1, 1, 1}, []int{4}},
		{"used, first batch over one as long", []int{4, 1, 1}, []int{4}},
		{"used, first batch over a longer one", []int{5, 2}, []int{3}},
		{"used, later batch over single ones", []int{1, 1, 1, 1, 1, 1, 1, 1}, []int{2, 4}},
		{"used, later batch over ones as long", []int{2, 4, 2}, []int{2, 4}},
		{"used, last batch to the end of the segment", []int{1, 3, 4}, []int{2, 2, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newTestLog(t, testSegment)
			merged := uint64(0)
			if tt.old != nil {
				for range 2 { // generation 1 in this segment, 2 in the other
					for _, sectors := range tt.old {
						l.add(t, sectors)
					}
					l.Switch()
				}
				merged = 1
			}
			live := len(tt.old) // generation 2 is not merged
			l.tearLast(t, merged, live, tt.new)
			if tt.old != nil {
				l.tearLast(t, 2, 2*len(tt.old), nil) // now it is
			}
		})
	}
}

// tearLast appends batches and then tries every state of the last one. What was
// appended from live on must be read, with the last batch if it is whole.
func (l *testLog) tearLast(t *testing.T, merged uint64, live int, sectors []int) {
	t.Helper()
	for _, n := range sectors[:max(0, len(sectors)-1)] {
		l.add(t, n)
	}
	before := l.content(t)
	if len(sectors) == 0 { // again, of the state before
		before = l.previous
	} else {
		l.previous = before
		l.add(t, sectors[len(sectors)-1])
	}
	after := l.content(t)
	size := l.appended[len(l.appended)-1].Size()
	end := l.segmentStart(l.active) + l.offset
	torn := 0
	eachState(before[end-size:end], after[end-size:end], func(image []byte) {
		l.put(t, append(append(bytes.Clone(after[:end-size]), image...), after[end:]...))
		want := l.appended[live:]
		if !bytes.Equal(image, after[end-size:end]) {
			want, torn = want[:len(want)-1], torn+1
		}
		got, err := l.read(merged)
		require.NoError(t, err)
		requireBatches(t, want, got.Batches)
	})
	require.Positive(t, torn)
	l.put(t, after)
}

// TestDamage damages every sector of every synced batch that has a successor: it
// is never taken for a torn end.
func TestDamage(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, testSegment)
	type place struct{ start, sectors int64 }
	var places []place
	add := func(sectors ...int) {
		for _, n := range sectors {
			places = append(places, place{l.segmentStart(l.active) + l.offset, int64(n)})
			l.add(t, n)
		}
	}
	add(1, 1, 1, 1, 1, 1, 1, 1)
	l.previous = l.content(t)
	l.Switch()
	add(1, 2, 4) // generation 2, sealed
	l.Switch()
	add(2, 1, 1, 2) // generation 3 over generation 1
	whole := l.content(t)
	l.requireRead(t, 1, 3, l.appended[8:])
	for i, p := range places[8 : len(places)-1] {
		for s := range p.sectors {
			for _, damage := range []func([]byte){
				func(b []byte) { clear(b) },
				func(b []byte) { b[7] ^= 0x10 },
				func(b []byte) { copy(b, l.previous[headerSize:]) }, // an old batch
			} {
				data := bytes.Clone(whole)
				damage(data[p.start+s*sectorSize:][:sectorSize])
				l.put(t, data)
				got, err := l.read(1)
				require.ErrorIs(t, err, ErrCorrupt, "batch %d, sector %d", i, s)
				require.Empty(t, got.Batches)
			}
		}
	}
	for _, p := range places[8:11] { // all of a sealed segment's batches but one
		data := bytes.Clone(whole)
		clear(data[l.segmentStart(1):][:p.start-l.segmentStart(1)])
		clear(data[p.start+p.sectors*sectorSize : l.segmentStart(1)+testSegment])
		l.put(t, data)
		_, err := l.read(1)
		require.ErrorIs(t, err, ErrCorrupt)
	}
	l.put(t, whole)
	l.requireRead(t, 1, 3, l.appended[8:])
	l.requireRead(t, 2, 3, l.appended[11:])
}

// TestSwappedSegments: batches are known by their generation, not by their place,
// but a segment that is there twice is damage.
func TestSwappedSegments(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, testSegment)
	l.add(t, 2)
	l.add(t, 2)
	l.Switch()
	l.add(t, 3)
	data := l.content(t)
	a, b := data[headerSize:headerSize+testSegment], data[headerSize+testSegment:]
	l.put(t, bytes.Join([][]byte{data[:headerSize], b, a}, nil))
	l.requireRead(t, 0, 2, l.appended)
	for _, double := range [][]byte{a, b} {
		l.put(t, bytes.Join([][]byte{data[:headerSize], double, double}, nil))
		_, err := l.read(0)
		require.Error(t, err)
		require.True(t, isTyped(err), "%v", err)
	}
}
