package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// testSegment is a segment of eight sectors, so that every state of it can be
// tried.
const testSegment = 4096

// testSeed is a seed like any other.
const testSeed = 0x12345678

// testLog is a journal with what was appended to it.
type testLog struct {
	*Journal
	path     string
	config   Config
	appended []Batch
	previous []byte // the file before the last batch of tearLast
}

func newTestLog(t *testing.T, segmentBytes int64) *testLog {
	t.Helper()
	l := &testLog{path: filepath.Join(t.TempDir(), "test-wal"), config: Config{Store: [16]byte{1, 2, 3}, SegmentBytes: segmentBytes}}
	l.config.Sync = func(*os.File) error { return nil } // what the disk does is made up by the tests
	var err error
	l.Journal, err = Create(l.path, l.config, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// add appends a batch that takes the given number of sectors, with content of its
// own in each.
func (l *testLog) add(t *testing.T, sectors int) Batch {
	t.Helper()
	n := len(l.appended) + 1
	b := Batch{
		State: fmt.Appendf(nil, "state %d", n),
		Entries: []Entry{
			{Key: fmt.Appendf(nil, "key %d", n), Version: uint64(10 * n), Value: []byte{}, Mark: n%2 == 0},
			{Key: []byte("gone"), Version: uint64(10*n + 1)},
			{Key: []byte("large"), Version: uint64(10*n + 2)},
		},
	}
	used := batchHeaderSize + len(b.State) + 3*entryHeaderSize + len("gonelarge") + len(b.Entries[0].Key)
	b.Entries[2].Value = bytes.Repeat(fmt.Appendf(nil, "%d.", n), sectorSize*sectors)[:sectors*sectorSize-used-9]
	require.EqualValues(t, sectors*sectorSize, b.Size())
	require.NoError(t, l.Append(b))
	l.appended = append(l.appended, b)
	return b
}

func (l *testLog) read(merged uint64) (Recovered, error) { return Read(l.path, l.config, merged) }

// requireRead requires that the journal yields these batches.
func (l *testLog) requireRead(t *testing.T, merged, generation uint64, want []Batch) {
	t.Helper()
	got, err := l.read(merged)
	require.NoError(t, err)
	require.Equal(t, generation, got.Generation)
	requireBatches(t, want, got.Batches)
}

func requireBatches(t *testing.T, want, got []Batch) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].State, got[i].State)
		require.Equal(t, want[i].Entries, got[i].Entries)
	}
}

// content is the file as it is; put replaces it.
func (l *testLog) content(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(l.path)
	require.NoError(t, err)
	return data
}

func (l *testLog) put(t *testing.T, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(l.path, data, 0o600))
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	batches := []Batch{
		{State: []byte{}},
		{State: []byte("s"), Entries: []Entry{{Key: []byte{}, Value: []byte{}}}},
		{State: []byte{}, Entries: []Entry{
			{Key: []byte("k"), Version: 1<<64 - 1, Value: []byte("v"), Mark: true},
			{Key: []byte("k"), Version: 7, Mark: true},
			{Key: bytes.Repeat([]byte{0xff}, 1<<16-1), Version: 8, Value: bytes.Repeat([]byte{0}, 3000)},
		}},
	}
	l := newTestLog(t, 1<<20)
	l.requireRead(t, 0, 0, nil)
	for i, b := range batches {
		require.NoError(t, l.Append(b))
		l.requireRead(t, 0, 1, batches[:i+1])
	}
}

func TestSegmentsInTurn(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, testSegment)
	require.Equal(t, l.path, l.Path())
	last := 0 // batches of merged generations
	for generation := uint64(1); generation <= 6; generation++ {
		require.Equal(t, generation, l.Generation())
		before := len(l.appended)
		for sectors := range 3 {
			l.add(t, sectors+1)
			if generation > 1 {
				l.requireRead(t, generation-2, generation, l.appended[last:])
			}
			l.requireRead(t, generation-1, generation, l.appended[before:])
			l.requireRead(t, generation, generation, nil)
		}
		last = before
		l.Switch()
	}
}

func TestSegmentFull(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, testSegment)
	l.add(t, 5)
	before := l.content(t)
	require.EqualValues(t, 3*sectorSize, l.Room())
	four := Batch{State: make([]byte, 3*sectorSize-batchHeaderSize+1)}
	require.EqualValues(t, 4*sectorSize, four.Size())
	require.ErrorIs(t, l.Append(four), ErrSegmentFull)
	require.True(t, bytes.Equal(before, l.content(t)), "nothing was to be written")
	three := Batch{State: make([]byte, 3*sectorSize-batchHeaderSize)}
	require.NoError(t, l.Append(three), "it fits exactly")
	require.Zero(t, l.Room())
	require.ErrorIs(t, l.Append(Batch{}), ErrSegmentFull)
	l.Switch()
	require.NoError(t, l.Append(four))
	got, err := l.read(0)
	require.NoError(t, err)
	require.Len(t, got.Batches, 3)
	require.ErrorIs(t, l.Append(Batch{State: make([]byte, testSegment)}), ErrSegmentFull, "it fits into no segment")
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, -4096, 4095, 4097} {
		_, err := Create(filepath.Join(t.TempDir(), "x"), Config{SegmentBytes: size}, 0)
		require.ErrorContains(t, err, "segment size")
	}
	_, err := Read(filepath.Join(t.TempDir(), "none"), Config{}, 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}
