package idem

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/stretchr/testify/require"
)

// openings are the ways to open a path.
func openings() []BoltConfig {
	return []BoltConfig{{}, {ReadOnly: true}, {Visitor: true}, {RequirePrivate: true}}
}

// TestForeignFile puts files of others at the path. Every way to open it must be
// ErrNotIdem, name the path, and leave bytes, times and directory as they are.
func TestForeignFile(t *testing.T) {
	t.Parallel()
	sqlite := append([]byte("SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20"), make([]byte, 8<<10)...)
	tests := []struct {
		name  string
		write func(t *testing.T, path string)
	}{
		{"empty file", content(nil)},
		{"one byte", content([]byte{0})},
		{"text", content([]byte("dear diary\n"))},
		{"long text", content([]byte(strings.Repeat("dear diary\n", 100_000)))},
		{"SQLite", content(sqlite)},
		{"zeros", content(make([]byte, 64<<10))},
		{"another application's bbolt file", foreignBolt(&bolt.Options{})},
		{"the same with a map freelist", foreignBolt(&bolt.Options{FreelistType: bolt.FreelistMapType})},
		{"the same without a freelist", foreignBolt(&bolt.Options{NoFreelistSync: true})},
		{"the same with pages of 16 KiB", foreignBolt(&bolt.Options{PageSize: 16 << 10})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			tt.write(t, path)
			same := untouched(t, path)
			for _, c := range openings() {
				s, err := OpenBoltStore(t.Context(), path, c)
				require.ErrorIs(t, err, ErrNotIdem)
				require.ErrorContains(t, err, path)
				require.Nil(t, s)
				same()
			}
			_, err := OpenTransient(t.Context(), path, BoltConfig{})
			require.ErrorIs(t, err, ErrNotIdem)
			_, err = Open(path)
			require.ErrorIs(t, err, ErrNotIdem)
			same()
		})
	}
}

func content(b []byte) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, b, 0o600)) }
}

func foreignBolt(o *bolt.Options) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		db, err := bolt.Open(path, 0o600, o)
		require.NoError(t, err)
		for i := range 3 {
			require.NoError(t, db.Update(func(tx *bolt.Tx) error {
				b, err := tx.CreateBucketIfNotExists([]byte("theirs"))
				if err != nil {
					return err
				}
				return b.Put([]byte{byte(i)}, bytes.Repeat([]byte("x"), 5000))
			}))
		}
		require.NoError(t, db.Close())
	}
}

// TestMissing: what is not there is created only for writing, and only in a
// directory that exists.
func TestMissing(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	_, err := OpenBoltStore(t.Context(), path, BoltConfig{ReadOnly: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = OpenTransient(t.Context(), path, BoltConfig{ReadOnly: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, path)
	_, err = OpenBoltStore(t.Context(), filepath.Join(path, "idem.db"), BoltConfig{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, path)
}
