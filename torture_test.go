package idem

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// crashDir is a directory in memory, if there is one: thousands of images are
// written, and nothing depends on the disk.
func crashDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "idem-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
