package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStores runs every store and looks whether the data is really there.
// Servers take part where they are installed.
func TestStores(t *testing.T) {
	claim, result := make([]byte, claimBytes), []byte("the result")
	for _, c := range candidates() {
		t.Run(c.name, func(t *testing.T) {
			s := c.open()
			err := s.Setup(target{Dir: openDir(t), Records: 50, Callers: 4})
			if errors.Is(err, errNotInstalled) {
				t.Skip(err)
			}
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			keys := []string{newKey(), newKey(), newKey()}
			for _, key := range keys {
				require.NoError(t, s.Do(key, claim, result))
			}
			if _, ok := s.(limiter); ok {
				return // keeps nothing that could be read
			}
			for _, key := range keys {
				require.ErrorIs(t, s.Do(key, claim, []byte("another")), errTaken)
				got, err := s.Read(key)
				require.NoError(t, err)
				require.Equal(t, result, got)
			}
			r, err := runRound(s, 4, 20*time.Millisecond)
			require.NoError(t, err)
			require.Positive(t, r.Ops)
		})
	}
}

// openDir is a folder that a server running as another user can get to.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	return dir
}
