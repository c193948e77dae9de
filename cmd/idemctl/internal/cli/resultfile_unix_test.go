//go:build unix

package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newTestPipe(t *testing.T) *resultFile {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	to, err := followLinks(path)
	require.NoError(t, err)
	require.True(t, to.streams())
	return &resultFile{target: to}
}

// A pipe that nobody reads keeps a call neither for ever nor from being stopped.
func TestResultPipeWithoutReader(t *testing.T) {
	t.Parallel()
	f := newTestPipe(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.ErrorContains(t, f.open(t.Context()), "nobody reads the pipe")
		require.InDelta(t, readerPatience, time.Since(began), float64(yieldTime))

		stopped := &signalError{syscall.SIGTERM}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopped)
		require.ErrorIs(t, f.open(ctx), stopped)
	})
}

func TestResultPipe(t *testing.T) {
	t.Parallel()
	f := newTestPipe(t)
	reader, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	require.NoError(t, f.open(t.Context()))
	require.NoError(t, f.write(runOutcome{Outcome: outcomeExecuted, Key: "run/a", Error: "x\u202e"}))
	doc, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, `{"outcome":"executed","exit_code":0,"key":"run/a","error":"x\u202e"}`+"\n", string(doc))
}
