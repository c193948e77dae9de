//go:build unix

package idem

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFileTakenAway takes the file away under an open store, in each way that
// lets a second process lock what is then at the path. The next write and the
// next round of the janitor must notice, before anything is written, and the
// store must be poisoned; a second service on the path must not be disturbed.
func TestFileTakenAway(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		take func(t *testing.T, path string)
	}{
		{"removed", func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }},
		{"renamed", func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+".old")) }},
		{"replaced by a copy", func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".copy", b, 0o600))
			require.NoError(t, os.Rename(path+".copy", path))
		}},
		{"replaced by an older backup", func(t *testing.T, path string) {
			require.NoError(t, os.Rename(faultFile(t, 1, 10), path))
		}},
		{"replaced by a link to itself", func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".old"))
			require.NoError(t, os.Symlink(path+".old", path))
		}},
		{"replaced by a directory", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		}},
	}
	notice := map[string]func(t *testing.T, s *BoltStore) error{
		"create": func(t *testing.T, s *BoltStore) error {
			_, err := s.Create(t.Context(), completed("new", "v"))
			return err
		},
		"swap": func(t *testing.T, s *BoltStore) error {
			_, err := s.Swap(t.Context(), 1, completed("k0", "v"))
			return err
		},
		"delete": func(t *testing.T, s *BoltStore) error { return s.Delete(t.Context(), faultKey("k0"), 1) },
		"expire": func(t *testing.T, s *BoltStore) error {
			_, err := s.Expire(t.Context(), 10)
			return err
		},
	}
	for _, tt := range tests {
		for name, notices := range notice {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				t.Parallel()
				path := faultFile(t, 3, 100)
				s := openFault(t, path, BoltConfig{})
				before := txid(t, s)
				tt.take(t, path)
				err := notices(t, s)
				require.ErrorIs(t, err, ErrPoisoned)
				require.ErrorContains(t, err, path)
				require.Equal(t, before, txid(t, s), "something was written to the file that was taken away")
				requirePoisoned(t, s, faultKey("k0"))
				require.NoError(t, s.Close())
			})
		}
	}
}

// TestSecondServiceOnReplacedFile: the second service on the path works while
// the first one finds out, and the first one's Close leaves it alone.
func TestSecondServiceOnReplacedFile(t *testing.T) {
	t.Parallel()
	path := faultFile(t, 1, 10)
	first := openFault(t, path, BoltConfig{})
	require.NoError(t, os.Remove(path))
	second := openFault(t, path, BoltConfig{LockTimeout: -1})
	_, err := second.Create(t.Context(), completed("a", "second"))
	require.NoError(t, err)
	rec, err := first.Create(t.Context(), completed("a", "first"))
	require.ErrorIs(t, err, ErrPoisoned)
	require.Equal(t, Record{}, rec)
	require.NoError(t, first.Close())
	_, err = second.Create(t.Context(), completed("b", "second"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "completed second", "b": "completed second"}, contents(t, second))
	require.NoError(t, second.Close())
	requireSound(t, path)
}

// TestJanitorNotices: with nothing written and nothing expired, the janitor's
// next round is what notices.
func TestJanitorNotices(t *testing.T) {
	t.Parallel()
	path := faultFile(t, 1, 10)
	s := openFault(t, path, BoltConfig{})
	rounds := make(chan error, 100)
	j, err := StartJanitor(s, JanitorConfig{Interval: 1, OnRound: func(_ int, err error) {
		select {
		case rounds <- err:
		default:
		}
	}})
	require.NoError(t, err)
	require.NoError(t, <-rounds)
	require.NoError(t, os.Remove(path))
	for err = nil; err == nil; {
		err = <-rounds
	}
	require.ErrorIs(t, err, ErrPoisoned)
	require.NoError(t, j.Close())
	requirePoisoned(t, s, faultKey("k0"))
}
