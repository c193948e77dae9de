package idem_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func openTxGuard(t testing.TB, opts ...idem.Option) *idem.Guard {
	t.Helper()
	g, err := idem.Open(filepath.Join(t.TempDir(), "tx.db"), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func txKey(id string) idem.Key { return idem.Key{Scope: "order", ID: id} }

func boltOf(g *idem.Guard) *idem.BoltStore { return g.Store().(*idem.BoltStore) }

func TestDoTxCommitsTogether(t *testing.T) {
	t.Parallel()
	g := openTxGuard(t)
	runs := 0
	order := func(ctx context.Context, tx *idem.Tx) (int, error) {
		runs++
		a, ok := idem.AttemptFrom(ctx)
		require.True(t, ok)
		require.Same(t, tx.Attempt(), a)
		require.NotEmpty(t, a.ChildKey("x"))
		_, err := g.Store().Get(ctx, txKey("1"))
		require.NoError(t, err, "the key is held")
		require.Nil(t, get(t, boltOf(g), "orders", "1"), "nothing is committed yet")
		return 42, tx.Bucket("orders").Put([]byte("1"), []byte("row"))
	}
	first, err := idem.DoTx(t.Context(), g, txKey("1"), "in", order)
	require.NoError(t, err)
	require.Equal(t, 42, first.Value)
	require.False(t, first.Replayed)
	require.Equal(t, idem.Completed, first.Record.State)
	require.Equal(t, []byte("row"), get(t, boltOf(g), "orders", "1"))

	again, err := idem.DoTx(t.Context(), g, txKey("1"), "in", order)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, 42, again.Value)
	do, err := idem.Do(t.Context(), g, txKey("1"), "in", func(context.Context, *idem.Attempt) (int, error) { return 0, nil })
	require.NoError(t, err)
	require.Equal(t, 42, do.Value)
	_, err = idem.DoTx(t.Context(), g, txKey("1"), "other", order)
	require.ErrorIs(t, err, idem.ErrMismatch)
	require.Equal(t, 1, runs)
	c := g.Counters()
	require.EqualValues(t, 1, c.Executed)
}

func TestDoTxEnds(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	tests := []struct {
		name  string
		opts  []idem.CallOption
		end   func() error
		state idem.State // 0: the key is free
	}{
		{"plain", nil, func() error { return oops }, 0},
		{"permanent", nil, func() error { return idem.Permanent(oops) }, idem.Failed},
		{"unknown", nil, func() error { return idem.Unknown(oops) }, idem.Interrupted},
		{"deadline", nil, func() error { return context.DeadlineExceeded }, 0},
		{"deadline by a classifier", []idem.CallOption{idem.WithClassifier(idem.Classify)}, func() error { return context.DeadlineExceeded }, idem.Interrupted},
		{"panic", nil, func() error { panic("boom") }, 0},
		{"goexit", nil, func() error { runtime.Goexit(); return nil }, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := openTxGuard(t)
			var res idem.Result[int]
			var err error
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = recover() }()
				res, err = idem.DoTx(context.Background(), g, txKey("1"), nil, func(_ context.Context, tx *idem.Tx) (int, error) {
					require.NoError(t, tx.Bucket("b").Put([]byte("k"), nil))
					return 7, tt.end()
				}, tt.opts...)
			})
			wg.Wait()
			require.Nil(t, get(t, boltOf(g), "b", "k"))
			rec, getErr := g.Store().Get(t.Context(), txKey("1"))
			if tt.state == 0 {
				require.ErrorIs(t, getErr, idem.ErrNotFound)
				again, err := idem.DoTx(t.Context(), g, txKey("1"), nil, func(context.Context, *idem.Tx) (int, error) { return 8, nil })
				require.NoError(t, err)
				require.Equal(t, 8, again.Value)
				return
			}
			require.NoError(t, getErr)
			require.Equal(t, tt.state, rec.State)
			require.Error(t, err)
			require.Equal(t, rec.Version, res.Record.Version)
			if tt.state == idem.Interrupted {
				require.ErrorIs(t, err, idem.ErrInterrupted)
			}
			_, err = idem.DoTx(t.Context(), g, txKey("1"), nil, func(context.Context, *idem.Tx) (int, error) { panic("ran again") })
			require.Error(t, err)
		})
	}
}

// TestDoTxAgainstDo: one of many callers of both kinds does the work.
func TestDoTxAgainstDo(t *testing.T) {
	t.Parallel()
	g := openTxGuard(t, idem.WithWait(time.Minute))
	for round := range 30 {
		key := txKey(fmt.Sprint(round))
		var runs atomic.Int64 // of Do, and committed ones of DoTx
		var wg sync.WaitGroup
		values := make([]int, 16)
		for i := range values {
			wg.Go(func() {
				var res idem.Result[int]
				var err error
				if i%2 == 0 {
					res, err = idem.Do(context.Background(), g, key, nil, func(context.Context, *idem.Attempt) (int, error) {
						runs.Add(1)
						return i, nil
					})
				} else {
					res, err = idem.DoTx(context.Background(), g, key, nil, func(_ context.Context, tx *idem.Tx) (int, error) {
						return i, tx.Bucket("runs").Append([]byte(key.ID))
					})
				}
				if err != nil {
					panic(err)
				}
				values[i] = res.Value
			})
		}
		wg.Wait()
		committed := 0
		require.NoError(t, boltOf(g).View(t.Context(), func(tx *idem.Tx) error {
			for p, err := range tx.Bucket("runs").Range(nil, nil) {
				require.NoError(t, err)
				if string(p.Value) == key.ID {
					committed++
				}
			}
			return nil
		}))
		require.EqualValues(t, 1, runs.Load()+int64(committed))
		for _, v := range values {
			require.Equal(t, values[0], v)
		}
	}
}

func TestDoTxInProgress(t *testing.T) {
	t.Parallel()
	g := openTxGuard(t)
	entered, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	end := sync.OnceFunc(func() { close(release) })
	defer end() // a failed test must not wait for ever
	go func() {
		_, err := idem.DoTx(context.Background(), g, txKey("1"), nil, func(_ context.Context, tx *idem.Tx) (string, error) {
			close(entered)
			<-release
			return "done", tx.Bucket("b").Put([]byte("k"), nil)
		})
		done <- err
	}()
	<-entered
	fn := func(context.Context, *idem.Attempt) (string, error) { panic("ran") }
	_, err := idem.Do(t.Context(), g, txKey("1"), nil, fn)
	require.ErrorIs(t, err, idem.ErrInProgress)
	_, err = idem.DoTx(t.Context(), g, txKey("1"), nil, func(context.Context, *idem.Tx) (string, error) { panic("ran") })
	require.ErrorIs(t, err, idem.ErrInProgress)
	_, err = idem.Do(t.Context(), g, txKey("1"), "other", fn)
	require.ErrorIs(t, err, idem.ErrMismatch)
	held, err := g.Store().Get(t.Context(), txKey("1"))
	require.NoError(t, err)
	require.ErrorIs(t, g.Store().Delete(t.Context(), txKey("1"), held.Version), idem.ErrConflict)
	_, err = g.Store().Swap(t.Context(), held.Version, held)
	require.ErrorIs(t, err, idem.ErrConflict)
	for rec, err := range g.Store().Scan(t.Context(), idem.Query{}) {
		require.NoError(t, err)
		require.Fail(t, "nothing is on disk", rec.Key.String())
	}
	waiting := make(chan error, 1)
	go func() {
		res, err := idem.Do(context.Background(), g, txKey("1"), nil, fn, idem.WithWait(time.Minute))
		if err == nil && res.Value != "done" {
			err = errors.New(res.Value)
		}
		waiting <- err
	}()
	other, err := idem.DoTx(t.Context(), g, txKey("2"), nil, func(_ context.Context, tx *idem.Tx) (string, error) {
		return "beside", tx.Bucket("b").Put([]byte("k2"), nil)
	})
	require.NoError(t, err)
	require.Equal(t, "beside", other.Value)
	end()
	require.NoError(t, <-done)
	require.NoError(t, <-waiting)
}

// TestDoTxTakesOver: over an interrupted attempt the record is replaced, with the
// next number.
func TestDoTxTakesOver(t *testing.T) {
	t.Parallel()
	policy := idem.Orders
	policy.OnInterrupted = idem.Rerun()
	g := openTxGuard(t, idem.WithPolicy(policy))
	_, err := idem.Do(t.Context(), g, txKey("1"), nil, func(context.Context, *idem.Attempt) (int, error) { return 0, idem.Unknown(errors.New("?")) })
	require.ErrorIs(t, err, idem.ErrInterrupted)
	before, err := g.Store().Get(t.Context(), txKey("1"))
	require.NoError(t, err)
	res, err := idem.DoTx(t.Context(), g, txKey("1"), nil, func(context.Context, *idem.Tx) (int, error) { return 5, nil })
	require.NoError(t, err)
	require.Equal(t, 2, res.Record.Attempt)
	require.Greater(t, res.Record.Version, before.Version)
	require.True(t, res.Record.CreatedAt.Equal(before.CreatedAt))
}

func TestDoTxRefuses(t *testing.T) {
	t.Parallel()
	fn := func(context.Context, *idem.Tx) (int, error) { panic("ran") }
	memory, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	require.NoError(t, err)
	_, err = idem.DoTx(t.Context(), memory, txKey("1"), nil, fn)
	require.ErrorIs(t, err, idem.ErrNoTransactions)

	g := openTxGuard(t)
	_, err = idem.DoTx(t.Context(), g, idem.Key{}, nil, fn)
	require.ErrorIs(t, err, idem.ErrInvalidKey)
	_, err = idem.DoTx(t.Context(), g, txKey("1"), nil, func(ctx context.Context, tx *idem.Tx) (int, error) {
		_, err := tx.Records().Get(ctx, txKey("1"))
		return 0, err
	})
	require.ErrorIs(t, err, idem.ErrInvalidInput, "its own key")
	_, err = idem.DoTx(t.Context(), g, txKey("1"), nil, func(context.Context, *idem.Tx) (chan int, error) { return nil, nil })
	require.ErrorContains(t, err, "encode the result")
	_, err = g.Store().Get(t.Context(), txKey("1"))
	require.ErrorIs(t, err, idem.ErrNotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = idem.DoTx(ctx, g, txKey("1"), nil, fn)
	require.ErrorIs(t, err, context.Canceled)
}

// TestDoTxShutdown: a guard that is shut down tells the function, whose
// transaction then comes too late.
func TestDoTxShutdown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tx.db")
	g, err := idem.Open(path)
	require.NoError(t, err)
	entered, done := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := idem.DoTx(context.Background(), g, txKey("1"), nil, func(ctx context.Context, tx *idem.Tx) (int, error) {
			close(entered)
			<-ctx.Done()
			return 0, tx.Bucket("b").Put([]byte("k"), nil)
		})
		done <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Shutdown(ctx), context.Canceled)
	err = <-done
	g, err2 := idem.Open(path)
	require.NoError(t, err2)
	defer g.Close()
	_, getErr := g.Store().Get(t.Context(), txKey("1"))
	require.Equal(t, err == nil, getErr == nil)
	require.Equal(t, err == nil, get(t, boltOf(g), "b", "k") != nil)
}
