package lock_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/lock"
)

// TestKilledCommand: the store sees that the process is gone, so nobody waits for
// the hour of its lease. Other systems do not tell.
func TestKilledCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := newLocks(t, openTransient(t, filepath.Join(dir, "idem.db")))
	taken := make(chan *lock.Held)
	fence := killHolder(t, "transient", dir, func() {
		requireHeld(t, l, "a")
		go func() { // is waiting when the holder is killed
			h, err := l.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			taken <- h
		}()
	})
	h := <-taken
	require.NotNil(t, h)
	require.Greater(t, h.Fence(), fence)
	require.NoError(t, h.Unlock(t.Context()))
}
