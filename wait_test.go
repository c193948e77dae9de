package idem_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

type answer struct {
	res idem.Result[string]
	err error
	at  time.Duration
}

// callers makes n calls at once and returns what they got.
func callers(n int, call func(i int) (idem.Result[string], error)) []answer {
	answers := make([]answer, n)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range n {
		wg.Go(func() {
			res, err := call(i)
			answers[i] = answer{res, err, time.Since(began)}
		})
	}
	wg.Wait()
	return answers
}

func TestAThousandCallersOneRun(t *testing.T) {
	t.Parallel()
	const n = 1000
	crowd := func(t *testing.T, g *idem.Guard, fn func(context.Context, *idem.Attempt) (string, error), before func()) {
		ran := 0
		for _, a := range callers(n, func(int) (idem.Result[string], error) {
			before()
			return idem.Do(context.Background(), g, order, pay, fn, idem.WithWait(idem.UntilDeadline))
		}) {
			require.NoError(t, a.err)
			require.Equal(t, "receipt", a.res.Value)
			require.Equal(t, idem.Completed, a.res.Record.State)
			if !a.res.Replayed {
				ran++
			}
		}
		require.Equal(t, 1, ran)
		require.EqualValues(t, 1, g.Counters().Executed)
		require.EqualValues(t, n-1, g.Counters().Replayed)
	}
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			crowd(t, memoryGuard(t), sleeps(5*time.Second, "receipt", nil), func() {})
			require.Equal(t, 5*time.Second, time.Since(began), "everybody is told at once")
		})
	})
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		g, err := idem.Open(filepath.Join(t.TempDir(), "idem.db"))
		require.NoError(t, err)
		var came sync.WaitGroup
		came.Add(n)
		crowd(t, g, func(context.Context, *idem.Attempt) (string, error) {
			came.Wait()
			return "receipt", nil
		}, came.Done)
		require.NoError(t, g.Close())
	})
}

func TestWaitingHasALimit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		start         time.Duration // after the first call
		wait, timeout time.Duration // 0: none
		after         time.Duration
		retry         time.Duration
		cause         error
	}{
		{"does not wait by default", 0, 0, 0, 0, time.Second, nil},
		{"waits as long as asked", 0, 2500 * time.Millisecond, 0, 2500 * time.Millisecond, 3 * time.Second, nil},
		{"hint grows with the run", 20 * time.Second, time.Second, 0, time.Second, 21 * time.Second, nil},
		{"hint has a limit", 10 * time.Minute, time.Second, 0, time.Second, 30 * time.Second, nil},
		{"ends with the deadline", 0, idem.UntilDeadline, 3 * time.Second, 3 * time.Second, 3 * time.Second, context.DeadlineExceeded},
		{"the shorter one counts", 0, time.Hour, 3500 * time.Millisecond, 3500 * time.Millisecond, 4 * time.Second, context.DeadlineExceeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := memoryGuard(t)
				go func() { _, _ = idem.Do(context.Background(), g, order, pay, sleeps(time.Hour, "late", nil)) }()
				synctest.Wait()
				time.Sleep(tt.start)
				ctx := t.Context()
				if tt.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.timeout)
					defer cancel()
				}
				began := time.Now()
				res, err := idem.Do(ctx, g, order, pay, mustNotRun[string](t), idem.WithWait(tt.wait))
				require.Equal(t, tt.after, time.Since(began))
				var busy *idem.InProgressError
				require.ErrorAs(t, err, &busy)
				require.ErrorIs(t, err, idem.ErrInProgress)
				require.True(t, tt.cause == nil || errors.Is(err, tt.cause))
				require.InDelta(t, tt.retry, busy.RetryAfter, float64(time.Second))
				require.GreaterOrEqual(t, busy.RetryAfter, time.Second)
				require.LessOrEqual(t, busy.RetryAfter, 30*time.Second)
				require.Equal(t, idem.Processing, res.Record.State)
				require.False(t, res.Replayed)
				require.NoError(t, g.Close())
			})
		})
	}
}

func TestOneWaiterTakesOver(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		first   error
		opts    []idem.CallOption
		attempt int
	}{
		{"after a failure", errors.New("nothing happened"), nil, 1},
		{"after an interruption", idem.Unknown(errDisk), []idem.CallOption{rerun()}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := memoryGuard(t)
				go func() {
					_, _ = idem.Do(context.Background(), g, order, pay, sleeps(time.Second, "first", tt.first))
				}()
				synctest.Wait()
				var running, runs atomic.Int32
				ran := 0
				for _, a := range callers(50, func(int) (idem.Result[string], error) {
					return idem.Do(context.Background(), g, order, pay, func(context.Context, *idem.Attempt) (string, error) {
						if running.Add(1) != 1 {
							t.Error("two run at once")
						}
						time.Sleep(time.Second)
						running.Add(-1)
						return fmt.Sprint("second ", runs.Add(1)), nil
					}, append(tt.opts, idem.WithWait(time.Minute))...)
				}) {
					require.NoError(t, a.err)
					require.Equal(t, "second 1", a.res.Value)
					require.Equal(t, tt.attempt, a.res.Record.Attempt)
					require.Equal(t, 2*time.Second, a.at)
					if !a.res.Replayed {
						ran++
					}
				}
				require.Equal(t, 1, ran)
			})
		})
	}
}

// plainStore hides everything optional that its store can do.
type plainStore struct {
	idem.Store
	gets atomic.Int32
}

func (s *plainStore) Get(ctx context.Context, key idem.Key) (idem.Record, error) {
	s.gets.Add(1)
	return s.Store.Get(ctx, key)
}

func TestWaitingWithoutSignalsPolls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		run      time.Duration
		min, max int32         // reads
		late     time.Duration // at most
	}{
		{20 * time.Millisecond, 3, 6, 30 * time.Millisecond},
		{time.Second, 6, 10, 750 * time.Millisecond},
		{time.Minute, 80, 130, 750 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.run.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &plainStore{Store: idem.NewMemoryStore(idem.MemoryConfig{})}
				g := guardOn(t, store, idem.WithSecret(testSecret))
				go func() { _, _ = idem.Do(context.Background(), g, order, pay, sleeps(tt.run, "receipt", nil)) }()
				synctest.Wait()
				store.gets.Store(0)
				began := time.Now()
				res, err := idem.Do(t.Context(), g, order, pay, mustNotRun[string](t), idem.WithWait(time.Hour))
				require.NoError(t, err)
				require.Equal(t, "receipt", res.Value)
				require.LessOrEqual(t, time.Since(began), tt.run+tt.late)
				require.GreaterOrEqual(t, store.gets.Load(), tt.min)
				require.LessOrEqual(t, store.gets.Load(), tt.max)
			})
		})
	}
}

// mortalStore says of its owners when they are dead.
type mortalStore struct {
	*idem.MemoryStore
	self string
	dead *atomic.Bool
}

func (s mortalStore) Owner() string           { return s.self }
func (s mortalStore) Alive(owner string) bool { return owner == s.self || !s.dead.Load() }

func TestWaiterNoticesADeadOwner(t *testing.T) {
	t.Parallel()
	tests := []struct {
		policy idem.Recovery
		err    error
		want   string
	}{{idem.FailClosed(), idem.ErrInterrupted, ""}, {idem.Rerun(), nil, "took over"}}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			store, dead := idem.NewMemoryStore(idem.MemoryConfig{}), &atomic.Bool{}
			p := idem.API
			p.OnInterrupted = tt.policy
			victim := guardOn(t, mortalStore{store, "victim", dead})
			g := guardOn(t, mortalStore{store, "waiter", dead}, idem.WithPolicy(p))
			go func() { _, _ = idem.Do(context.Background(), victim, order, pay, sleeps(time.Hour, "late", nil)) }()
			time.AfterFunc(5500*time.Millisecond, func() { dead.Store(true) })
			synctest.Wait()
			began := time.Now()
			res, err := idem.Do(t.Context(), g, order, pay, returns("took over", nil), idem.WithWait(time.Hour))
			require.Greater(t, time.Since(began), 5*time.Second)
			require.LessOrEqual(t, time.Since(began), 6500*time.Millisecond, "long before the lease is over")
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.want, res.Value)
			require.NoError(t, victim.Close())
		})
	}
}
