package idem_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// Whoever opens the file after a Shutdown that did not wait takes the attempts
// for interrupted, so the functions that still run must be told.
func TestShutdownCutsOffRunningFunctions(t *testing.T) {
	t.Parallel()
	g, err := idem.Open(filepath.Join(t.TempDir(), "idem.db"))
	require.NoError(t, err)
	started, closed, result := make(chan context.Context), make(chan struct{}), make(chan error)
	go func() {
		_, err := idem.Do(context.Background(), g, idem.Key{Scope: "test", ID: "k"}, nil, func(ctx context.Context, _ *idem.Attempt) (int, error) {
			started <- ctx
			<-ctx.Done()
			<-closed // one that is quick enough is still recorded
			return 1, nil
		})
		result <- err
	}()
	running := <-started
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Shutdown(ended), context.Canceled)
	close(closed)
	require.ErrorIs(t, context.Cause(running), idem.ErrLeaseLost)
	err = <-result
	require.ErrorIs(t, err, idem.ErrNotRecorded)
	require.ErrorIs(t, err, idem.ErrClosed)
}

// A key that was settled under a slow worker: its result is not the one that
// repeats get, and it must learn that.
func TestSlowWorkerLearnsThatItsKeyWasSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newHookStore()
		store.onSwap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
			if rec.State == idem.Processing {
				return idem.Record{}, context.DeadlineExceeded // no renewal gets through
			}
			return store.MemoryStore.Swap(ctx, version, rec)
		}
		policy := idem.Policy{Retention: time.Hour, Lease: time.Second}
		slow := guardOn(t, store, idem.WithPolicy(policy))
		policy.OnInterrupted = idem.Reconcile(func(context.Context, idem.Record) (idem.Verdict, error) {
			return idem.Done("reconciled"), nil
		})
		other := guardOn(t, store.MemoryStore, idem.WithPolicy(policy))
		key := idem.Key{Scope: "test", ID: "k"}
		res, err := idem.Do(t.Context(), slow, key, nil, func(ctx context.Context, _ *idem.Attempt) (string, error) {
			time.Sleep(2 * time.Second)
			got, err := idem.Do(context.WithoutCancel(ctx), other, key, nil, mustNotRun[string](t))
			require.NoError(t, err)
			require.Equal(t, "reconciled", got.Value)
			return "own", nil
		})
		require.Equal(t, "own", res.Value)
		require.ErrorIs(t, err, idem.ErrNotRecorded)
		require.ErrorIs(t, err, idem.ErrLeaseLost)
	})
}

func TestSecretIsNotOverridden(t *testing.T) {
	t.Parallel()
	_, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}), idem.WithSecret(make([]byte, 16)))
	require.ErrorContains(t, err, "WithSecret")
}
