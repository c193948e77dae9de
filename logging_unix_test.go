//go:build unix

package idem_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestOpenLogsWarningsAboutTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	g, err := idem.Open(path)
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.NoError(t, os.Chmod(path, 0o644))
	var out bytes.Buffer
	g, err = idem.Open(path, idem.WithLogger(slog.NewTextHandler(&out, nil)))
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.Contains(t, out.String(), "level=WARN")
	require.Contains(t, out.String(), "mode 0644")
}
