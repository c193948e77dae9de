package flockinfo

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingToReport(t *testing.T) {
	t.Parallel()
	pid, ok := Holder(filepath.Join(t.TempDir(), "missing"))
	require.False(t, ok)
	require.Zero(t, pid)
	for _, pid := range []int{-1, 0, 1<<31 - 1} {
		require.Empty(t, Command(pid))
	}
}
