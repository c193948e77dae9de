package journal

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzDecodeBatch(f *testing.F) {
	for _, b := range []Batch{
		{},
		{State: []byte("state"), generation: 1, sequence: 2},
		{Entries: []Entry{{Key: []byte("k"), Version: 3, Value: []byte("v"), Mark: true}, {Key: []byte("gone"), Version: math.MaxUint64}}},
	} {
		f.Add(b.encode(nil, testSeed), false)
		f.Add(b.encode(nil, testSeed)[12:], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, sum bool) {
		if sum { // the checksum is right, so that the rest is looked at
			data = append(make([]byte, 12), data...)
			binary.BigEndian.PutUint32(data, batchMagic)
			binary.BigEndian.PutUint32(data[4:], uint32(len(data)))
			binary.BigEndian.PutUint32(data[8:], checksum(testSeed, data[12:]))
		}
		b, size, ok := decodeBatch(data, testSeed)
		if !ok {
			return
		}
		require.Equal(t, b.Size(), size)
		again := b.encode(nil, testSeed)
		got, _, ok := decodeBatch(again, testSeed)
		require.True(t, ok)
		require.Equal(t, b, got)
		length := binary.BigEndian.Uint32(data[4:])
		require.True(t, bytes.Equal(again[:length], data[:length]), "two forms of one batch")
	})
}

// FuzzRead reads files of arbitrary bytes behind a header that is right.
func FuzzRead(f *testing.F) {
	config := Config{Store: [16]byte{1}, SegmentBytes: testSegment, Sync: func(*os.File) error { return nil }}
	path := filepath.Join(f.TempDir(), "seed-wal")
	j, err := Create(path, config, 0)
	require.NoError(f, err)
	for i := range 5 {
		require.NoError(f, j.Append(Batch{State: []byte("s"), Entries: []Entry{{Key: []byte("k"), Version: uint64(i), Value: make([]byte, 900)}}}))
		if i == 2 {
			j.Switch()
		}
	}
	require.NoError(f, j.Close())
	whole, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(whole[headerSize:], uint64(0), false)
	f.Add(whole[headerSize:], uint64(1), false)
	f.Add(whole[headerSize+1000:], uint64(1), false)
	f.Add(whole, uint64(0), true)
	f.Add(whole[:headerUsed], uint64(0), true)
	f.Fuzz(func(t *testing.T, data []byte, merged uint64, all bool) {
		file := data
		if !all {
			file = append(bytes.Clone(whole[:headerSize]), data...)
			file = append(file, make([]byte, max(0, len(whole)-len(file)))...)[:len(whole)]
		}
		path := filepath.Join(t.TempDir(), "fuzz-wal")
		require.NoError(t, os.WriteFile(path, file, 0o600))
		got, err := Read(path, config, merged)
		if err != nil {
			require.True(t, isTyped(err), "%v", err)
			require.Empty(t, got.Batches)
			return
		}
		for i, b := range got.Batches {
			require.Greater(t, b.generation, merged)
			if i > 0 {
				require.Equal(t, got.Batches[i-1].sequence+1, b.sequence)
			}
		}
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(file, after), "reading has written")
	})
}
