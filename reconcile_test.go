package idem_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func reconciling(ask idem.ReconcileFunc) idem.CallOption {
	p := idem.API
	p.OnInterrupted = idem.Reconcile(ask)
	return idem.WithPolicy(p)
}

func verdict(v idem.Verdict, err error) idem.CallOption {
	return reconciling(func(context.Context, idem.Record) (idem.Verdict, error) { return v, err })
}

func TestReconcileDone(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	g := guardOn(t, store)
	found := seed(t, store, idem.Interrupted, 0, time.Minute)
	var asked []idem.Record
	ask := reconciling(func(_ context.Context, rec idem.Record) (idem.Verdict, error) {
		asked = append(asked, rec)
		return idem.Done(payment{7, "USD"}), nil
	})
	for range 2 {
		res, err := idem.Do(t.Context(), g, order, pay, mustNotRun[payment](t), ask)
		require.NoError(t, err)
		require.True(t, res.Replayed)
		require.Equal(t, payment{7, "USD"}, res.Value)
	}
	require.Equal(t, []idem.Record{found}, asked, "a verdict is asked for once")

	rec := stored(t, store)
	require.Equal(t, idem.Completed, rec.State)
	require.Equal(t, "reconciled", rec.Note)
	require.Empty(t, rec.Error)
	require.Equal(t, found.Attempt, rec.Attempt)
	require.Equal(t, found.CreatedAt, rec.CreatedAt)
	require.Equal(t, idem.API.Retention, rec.ExpiresAt.Sub(rec.UpdatedAt), "it is kept from the verdict on")
}

func TestReconcileDoneWithBytes(t *testing.T) {
	t.Parallel()
	for _, want := range [][]byte{nil, {}, []byte("raw")} {
		store := idem.NewMemoryStore(idem.MemoryConfig{})
		seed(t, store, idem.Interrupted, 0, time.Minute)
		res, err := idem.Do(t.Context(), guardOn(t, store), order, pay, mustNotRun[[]byte](t), verdict(idem.Done(want), nil))
		require.NoError(t, err)
		require.Equal(t, want, res.Value)
	}
}

func TestReconcileNotDoneRunsAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		state idem.State
		lease time.Duration
	}{{"interrupted", idem.Interrupted, 0}, {"lease over", idem.Processing, -time.Second}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := idem.NewMemoryStore(idem.MemoryConfig{})
			found := seed(t, store, tt.state, tt.lease, time.Hour)
			res, err := idem.Do(t.Context(), guardOn(t, store), order, pay, returns("again", nil), verdict(idem.NotDone(), nil))
			require.NoError(t, err)
			require.Equal(t, "again", res.Value)
			require.False(t, res.Replayed)
			require.Equal(t, 2, res.Record.Attempt)
			require.Equal(t, found.CreatedAt, res.Record.CreatedAt)
		})
	}
}

func TestReconcileWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	down := errors.New("provider is down")
	tests := []struct {
		name    string
		verdict idem.Verdict
		err     error
		cause   string
	}{
		{"still unknown", idem.StillUnknown(), nil, ""},
		{"zero verdict", idem.Verdict{}, nil, ""},
		{"error", idem.StillUnknown(), down, "provider is down"},
		{"an error outweighs the verdict", idem.NotDone(), down, "provider is down"},
		{"a value that cannot be stored", idem.Done(make(chan int)), nil, "encode the reconciled value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := idem.NewMemoryStore(idem.MemoryConfig{})
			g := guardOn(t, store)
			found := seed(t, store, idem.Interrupted, 0, time.Hour)
			res, err := idem.Do(t.Context(), g, order, pay, mustNotRun[string](t), verdict(tt.verdict, tt.err))
			var open *idem.InterruptedError
			require.ErrorAs(t, err, &open)
			require.ErrorIs(t, err, idem.ErrInterrupted)
			require.Equal(t, found, open.Record)
			require.Equal(t, found, res.Record)
			if tt.cause == "" {
				require.NoError(t, open.Cause)
			} else {
				require.ErrorContains(t, open.Cause, tt.cause)
			}
			require.True(t, tt.err == nil || errors.Is(err, tt.err))
			require.Equal(t, found, stored(t, store))
			require.EqualValues(t, 1, g.Counters().Interrupted)
		})
	}
}

func TestReconcileKeepsItsHandsOff(t *testing.T) {
	t.Parallel()
	ask := reconciling(func(context.Context, idem.Record) (idem.Verdict, error) {
		t.Error("asked")
		return idem.NotDone(), nil
	})
	for state, want := range map[idem.State]error{idem.Completed: nil, idem.Failed: idem.ErrFailed, idem.Processing: idem.ErrInProgress} {
		store := idem.NewMemoryStore(idem.MemoryConfig{})
		seed(t, store, state, time.Minute, time.Hour)
		_, err := idem.Do(t.Context(), guardOn(t, store), order, pay, mustNotRun[string](t), ask)
		require.ErrorIs(t, err, want)
		_, err = idem.Do(t.Context(), guardOn(t, store), order, "other", mustNotRun[string](t), ask)
		require.ErrorIs(t, err, idem.ErrMismatch)
	}
}

func TestConcurrentReconcilersStoreOneVerdict(t *testing.T) {
	t.Parallel()
	const n = 20
	synctest.Test(t, func(t *testing.T) {
		store := newHookStore()
		g := guardOn(t, store)
		found := seed(t, store.MemoryStore, idem.Interrupted, 0, time.Hour)
		var asked atomic.Int32
		values := make(map[int]bool)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				res, err := idem.Do(context.Background(), g, order, pay, mustNotRun[int](t),
					reconciling(func(context.Context, idem.Record) (idem.Verdict, error) {
						mine := asked.Add(1)
						time.Sleep(time.Second)
						return idem.Done(int(mine)), nil
					}))
				if err != nil || !res.Replayed {
					t.Errorf("Do = %v, %v", res, err)
				}
				mu.Lock()
				defer mu.Unlock()
				values[res.Value] = true
			})
		}
		wg.Wait()
		require.EqualValues(t, n, asked.Load())
		require.Len(t, values, 1)
		require.Equal(t, found.Version+1, stored(t, store).Version)
	})
}

func TestConcurrentReconcilersRunOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := idem.NewMemoryStore(idem.MemoryConfig{})
		g := guardOn(t, store)
		seed(t, store, idem.Interrupted, 0, time.Hour)
		ran := 0
		for _, a := range callers(20, func(int) (idem.Result[string], error) {
			return idem.Do(context.Background(), g, order, pay, sleeps(time.Second, "again", nil),
				reconciling(func(context.Context, idem.Record) (idem.Verdict, error) {
					time.Sleep(time.Second)
					return idem.NotDone(), nil
				}), idem.WithWait(time.Minute))
		}) {
			require.NoError(t, a.err)
			require.Equal(t, "again", a.res.Value)
			require.Equal(t, 2, a.res.Record.Attempt)
			if !a.res.Replayed {
				ran++
			}
		}
		require.Equal(t, 1, ran)
	})
}

// What another call settled while this one asked is what counts.
func TestVerdictThatComesTooLate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		settle func(t *testing.T, store *idem.MemoryStore, rec idem.Record)
		value  string
		err    error
	}{
		{"completed by hand", func(t *testing.T, store *idem.MemoryStore, rec idem.Record) {
			rec.State, rec.Value = idem.Completed, []byte(`"by hand"`)
			_, err := store.Swap(t.Context(), rec.Version, rec)
			require.NoError(t, err)
		}, "by hand", nil},
		{"failed by hand", func(t *testing.T, store *idem.MemoryStore, rec idem.Record) {
			rec.State, rec.Error = idem.Failed, "refunded"
			_, err := store.Swap(t.Context(), rec.Version, rec)
			require.NoError(t, err)
		}, "", idem.ErrFailed},
		{"removed by hand", func(t *testing.T, store *idem.MemoryStore, rec idem.Record) {
			require.NoError(t, store.Delete(t.Context(), order, rec.Version))
		}, "ran", nil},
	}
	for _, tt := range tests {
		for name, v := range map[string]idem.Verdict{"done": idem.Done("late"), "not done": idem.NotDone()} {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				t.Parallel()
				store := idem.NewMemoryStore(idem.MemoryConfig{})
				seed(t, store, idem.Interrupted, 0, time.Hour)
				res, err := idem.Do(t.Context(), guardOn(t, store), order, pay, returns("ran", nil),
					reconciling(func(_ context.Context, rec idem.Record) (idem.Verdict, error) {
						tt.settle(t, store, rec)
						return v, nil
					}))
				require.ErrorIs(t, err, tt.err)
				require.Equal(t, tt.value, res.Value)
			})
		}
	}
}
