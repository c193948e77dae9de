package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var errInjected = errors.New("injected")

// failNth makes the n-th write or sync of a journal fail. A write is cut short
// first.
func failNth(c Config, n int, fired *bool) Config {
	calls := 0
	fail := func() bool {
		calls++
		*fired = *fired || calls == n
		return calls == n
	}
	c.WriteAt = func(f *os.File, b []byte, off int64) (int, error) {
		if fail() {
			n, _ := f.WriteAt(b[:len(b)/2], off)
			return n, errInjected
		}
		return f.WriteAt(b, off)
	}
	c.Sync = func(*os.File) error {
		if fail() {
			return errInjected
		}
		return nil
	}
	return c
}

// TestNthCallFails lets each write and sync of a script fail in turn, until none
// does: the error is named, what was appended before can be read, and a journal
// whose creation failed is not there.
func TestNthCallFails(t *testing.T) {
	t.Parallel()
	n := 0
	for fired := true; fired; n++ {
		fired = false
		path := filepath.Join(t.TempDir(), "test-wal")
		c := Config{Store: [16]byte{7}, SegmentBytes: testSegment}
		done, err := faultScript(path, failNth(c, n+1, &fired))
		require.Equal(t, fired, err != nil, "call %d", n+1)
		if fired {
			require.ErrorIs(t, err, errInjected)
		}
		names, globErr := filepath.Glob(path + "*")
		require.NoError(t, globErr)
		if done < 0 {
			require.Empty(t, names)
			continue
		}
		require.Equal(t, []string{path}, names)
		got, err := Read(path, c, 0)
		require.NoError(t, err)
		require.Contains(t, []int{done, done + 1}, len(got.Batches), "the one that failed may be there")
	}
	require.Equal(t, 2+1+2*6, n-1, "header, zeroes, sync; and both for each batch")
}

// faultScript returns how many batches were appended before an error, -1 if there
// is no journal.
func faultScript(path string, c Config) (done int, err error) {
	j, err := Create(path, c, 0)
	if err != nil {
		return -1, err
	}
	defer j.Close()
	for done := range 6 {
		if done == 3 {
			j.Switch()
		}
		if err := j.Append(Batch{State: make([]byte, 700)}); err != nil {
			return done, err
		}
	}
	return 6, nil
}

// TestCreateCannotRename: nothing is left of a journal that could not get its
// name.
func TestCreateCannotRename(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test-wal")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
	_, err := Create(path, Config{SegmentBytes: testSegment}, 0)
	require.Error(t, err)
	names, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.Equal(t, []string{path}, names)
	_, err = Create(filepath.Join(path, "no such directory", "x"), Config{SegmentBytes: testSegment}, 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestSyncOfTheSystem: without a seam the real calls are made.
func TestSyncOfTheSystem(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test-wal")
	done, err := faultScript(path, Config{SegmentBytes: testSegment})
	require.NoError(t, err)
	require.Equal(t, 6, done)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, headerSize+2*testSegment, info.Size())
	j, err := Create(path, Config{SegmentBytes: testSegment}, 0)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.ErrorIs(t, j.Append(Batch{}), os.ErrClosed)
}
