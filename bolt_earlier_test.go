package idem

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFileOfEarlierBuild opens a file of the build that had no journal, whose
// records last until 2030: everything in it must mean what it meant, under a
// journal too.
func TestFileOfEarlierBuild(t *testing.T) {
	t.Parallel()
	packed, err := os.ReadFile("testdata/store-v1.db.gz")
	require.NoError(t, err)
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	content, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	for name, config := range map[string]BoltConfig{"file": {}, "journal": WithJournal(BoltConfig{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			require.NoError(t, os.WriteFile(path, content, 0o600))
			requireEarlierRecords(t, openFault(t, path, BoltConfig{ReadOnly: true}))
			s := openFault(t, path, config)
			requireEarlierRecords(t, s)
			for i := range 100 {
				_, err := s.Create(t.Context(), completed(fmt.Sprint(i), faultValue(i, 1000)))
				require.NoError(t, err)
			}
			require.NoError(t, s.Close())
			requireSound(t, path)
			requireEarlierRecords(t, openFault(t, path, BoltConfig{}))
		})
	}
}

// requireEarlierRecords also closes a reader, so that the file can be opened for
// writing.
func requireEarlierRecords(t *testing.T, s *BoltStore) {
	t.Helper()
	g, err := New(s)
	require.NoError(t, err)
	repeat := func(id string, input any) (Result[string], error) {
		return Do(t.Context(), g, Key{Scope: "golden", ID: id}, input, func(context.Context, *Attempt) (string, error) {
			t.Errorf("%s runs again", id)
			return "", nil
		})
	}
	for i := range 5 {
		id := fmt.Sprint("done-", i)
		res, err := repeat(id, id)
		require.NoError(t, err)
		require.Equal(t, "value of "+id, res.Value)
		require.GreaterOrEqual(t, res.Record.Replays, uint64(i))
		_, err = repeat(id, "other input")
		require.ErrorIs(t, err, ErrMismatch, "fingerprints are still comparable")
	}
	_, err = repeat("failed", nil)
	require.ErrorIs(t, err, ErrFailed)
	_, err = repeat("interrupted", nil)
	require.ErrorIs(t, err, ErrInterrupted)
	if s.writer == nil {
		require.NoError(t, s.Close())
	}
}
