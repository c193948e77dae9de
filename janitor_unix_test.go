//go:build unix

package idem_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestOpenReportsFailingRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, log := filepath.Join(t.TempDir(), "idem.db"), &eventLog{}
		var rounds []error
		g, err := idem.Open(path, idem.WithObserver(log.observe), idem.WithJanitor(idem.JanitorConfig{
			OnRound: func(_ int, err error) { rounds = append(rounds, err) },
		}))
		require.NoError(t, err)
		require.NoError(t, os.Rename(path, path+".moved"))
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		events := log.take()
		require.Len(t, events, 1)
		require.Equal(t, idem.EventStoreError, events[0].Kind)
		require.ErrorIs(t, events[0].Err, idem.ErrPoisoned)
		require.Len(t, rounds, 1)
		require.ErrorIs(t, rounds[0], idem.ErrPoisoned)
		_, err = idem.Do(t.Context(), g, order, nil, mustNotRun[int](t))
		require.ErrorIs(t, err, idem.ErrPoisoned)
		_ = g.Close() // what it says of a moved file is the store's business
	})
}
