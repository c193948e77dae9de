package idem_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

const lease = 30 * time.Second // of the API policy

// sleeps is a guarded function that takes a while.
func sleeps[T any](d time.Duration, v T, err error) func(context.Context, *idem.Attempt) (T, error) {
	return func(context.Context, *idem.Attempt) (T, error) {
		time.Sleep(d)
		return v, err
	}
}

func TestLongRunKeepsItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := memoryGuard(t, rerun())
		var run sync.WaitGroup
		run.Go(func() {
			res, err := idem.Do(context.Background(), g, order, pay, sleeps(20*lease, "first", nil))
			if err != nil || res.Record.Attempt != 1 {
				t.Errorf("Do = attempt %d, %v", res.Record.Attempt, err)
			}
		})
		for range 80 {
			synctest.Wait()
			_, err := idem.Do(t.Context(), g, order, pay, mustNotRun[string](t))
			require.ErrorIs(t, err, idem.ErrInProgress)
			time.Sleep(lease/4 - time.Millisecond)
		}
		run.Wait()
	})
}

func TestLeaseIsRenewedAtAThird(t *testing.T) {
	t.Parallel()
	tests := []struct {
		run  time.Duration
		want []time.Duration
	}{
		{lease/3 - 1, nil},
		{lease - 1, []time.Duration{lease / 3, 2 * lease / 3}},
		{4*lease/3 - 1, []time.Duration{lease / 3, 2 * lease / 3, lease}},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			store := newHookStore()
			began := time.Now()
			var renewals []time.Duration
			store.onSwap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
				if rec.State == idem.Processing {
					renewals = append(renewals, time.Since(began))
					require.Equal(t, lease, rec.LeaseUntil.Sub(store.Now()))
					require.Equal(t, idem.API.Retention, rec.ExpiresAt.Sub(rec.LeaseUntil))
				}
				return store.MemoryStore.Swap(ctx, version, rec)
			}
			res, err := idem.Do(t.Context(), guardOn(t, store), order, pay, sleeps(tt.run, 1, nil))
			require.NoError(t, err)
			require.Equal(t, tt.want, renewals)
			require.Equal(t, began.UTC(), res.Record.StartedAt)
			time.Sleep(10 * lease)
			require.EqualValues(t, 2+len(tt.want), store.writes.Load(), "nothing is renewed after the end")
		})
	}
}

// A function whose lease cannot be renewed is told before anybody may take its
// key over, and cannot write its end afterwards.
func TestLostLeaseStopsTheFunctionFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newHookStore()
		down := func(context.Context, uint64, idem.Record) (idem.Record, error) { return idem.Record{}, errDisk }
		store.onSwap = down
		stalled, other := guardOn(t, store), guardOn(t, store.MemoryStore, rerun())

		var told, taken time.Time
		var versions [2]uint64
		var run sync.WaitGroup
		run.Go(func() {
			res, err := idem.Do(context.Background(), stalled, order, pay, func(ctx context.Context, a *idem.Attempt) (string, error) {
				<-ctx.Done()
				told, versions[0] = time.Now(), a.Version()
				if !errors.Is(context.Cause(ctx), idem.ErrLeaseLost) || !errors.Is(context.Cause(ctx), errDisk) {
					t.Errorf("cause = %v", context.Cause(ctx))
				}
				time.Sleep(10 * lease) // and goes on all the same
				store.onSwap = nil
				return "slow", nil
			})
			if res.Value != "slow" || !errors.Is(err, idem.ErrNotRecorded) || !errors.Is(err, idem.ErrLeaseLost) {
				t.Errorf("Do = %q, %v", res.Value, err)
			}
		})
		synctest.Wait()
		res, err := idem.Do(t.Context(), other, order, pay, func(_ context.Context, a *idem.Attempt) (string, error) {
			taken, versions[1] = time.Now(), a.Version()
			return "quick", nil
		}, idem.WithWait(idem.UntilDeadline))
		require.NoError(t, err)
		require.Equal(t, "quick", res.Value)
		require.Equal(t, 2, res.Record.Attempt)
		run.Wait()
		require.Less(t, told, taken)
		require.Less(t, versions[0], versions[1])
		require.Equal(t, "quick", replayed(t, other))
		require.EqualValues(t, 1, stalled.Counters().LeaseLost)
		require.Zero(t, stalled.Counters().StoreError)
	})
}

func replayed(t *testing.T, g *idem.Guard) string {
	t.Helper()
	res, err := idem.Do(t.Context(), g, order, pay, mustNotRun[string](t))
	require.NoError(t, err)
	require.True(t, res.Replayed)
	return res.Value
}

func TestLeaseLostToAnotherWriter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		write func(t *testing.T, store *idem.MemoryStore, rec idem.Record)
		ends  error
	}{
		{"removed by hand, succeeds", func(t *testing.T, store *idem.MemoryStore, rec idem.Record) {
			require.NoError(t, store.Delete(t.Context(), order, rec.Version))
		}, nil},
		{"settled by hand, succeeds", func(t *testing.T, store *idem.MemoryStore, rec idem.Record) {
			rec.State, rec.LeaseUntil, rec.Owner = idem.Completed, time.Time{}, "h:operator"
			_, err := store.Swap(t.Context(), rec.Version, rec)
			require.NoError(t, err)
		}, nil},
		{"removed by hand, fails", func(t *testing.T, store *idem.MemoryStore, rec idem.Record) {
			require.NoError(t, store.Delete(t.Context(), order, rec.Version))
		}, context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := idem.NewMemoryStore(idem.MemoryConfig{})
				g := guardOn(t, store)
				began := time.Now()
				res, err := idem.Do(t.Context(), g, order, pay, func(ctx context.Context, _ *idem.Attempt) (string, error) {
					tt.write(t, store, stored(t, store))
					<-ctx.Done()
					require.ErrorIs(t, context.Cause(ctx), idem.ErrLeaseLost)
					require.Equal(t, lease/3, time.Since(began), "noticed by the next renewal")
					return "value", tt.ends
				})
				require.Equal(t, "value", res.Value)
				require.ErrorIs(t, err, idem.ErrNotRecorded)
				require.ErrorIs(t, err, idem.ErrLeaseLost)
				require.EqualValues(t, 1, g.Counters().LeaseLost)
			})
		})
	}
}

// A renewal that was written although it reported an error is recognised as the
// attempt's own.
func TestRenewalOfUnknownOutcomeIsAdopted(t *testing.T) {
	t.Parallel()
	for _, run := range []time.Duration{lease/3 + 1, 5 * lease} { // until before and after the next renewal
		synctest.Test(t, func(t *testing.T) {
			store := newHookStore()
			failed := false
			store.onSwap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
				rec, err := store.MemoryStore.Swap(ctx, version, rec)
				if err == nil && !failed {
					failed = true
					return idem.Record{}, errDisk
				}
				return rec, err
			}
			g := guardOn(t, store)
			res, err := idem.Do(t.Context(), g, order, pay, sleeps(run, "value", nil))
			require.NoError(t, err)
			require.True(t, failed)
			require.Equal(t, idem.Completed, res.Record.State)
			require.Equal(t, "value", replayed(t, g))
			require.Zero(t, g.Counters().LeaseLost)
		})
	}
}

// The end of a run does not wait for a renewal that waits for a lock.
func TestEndDuringARenewal(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		written bool // the renewal reached the store before it hung
		err     error
	}{
		{"not written, done", false, nil},
		{"written, done", true, nil},
		{"written, released", true, errors.New("nothing happened")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newHookStore()
				store.onSwap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
					if rec.State != idem.Processing {
						return store.MemoryStore.Swap(ctx, version, rec)
					}
					if tt.written {
						_, err := store.MemoryStore.Swap(ctx, version, rec)
						require.NoError(t, err)
					}
					<-ctx.Done()
					return idem.Record{}, ctx.Err()
				}
				g := guardOn(t, store)
				began := time.Now()
				_, err := idem.Do(t.Context(), g, order, pay, sleeps(lease/2, "value", tt.err))
				require.ErrorIs(t, err, tt.err)
				require.NotErrorIs(t, err, idem.ErrNotRecorded)
				require.LessOrEqual(t, time.Since(began), lease/2+10*time.Millisecond)
				_, err = store.Get(t.Context(), order)
				require.Equal(t, tt.err != nil, errors.Is(err, idem.ErrNotFound))
			})
		})
	}
}

// The store may come back before the lease is over.
func TestRenewalIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newHookStore()
		began := time.Now()
		store.onSwap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
			if up := time.Since(began); up < 8*lease/10 {
				return idem.Record{}, errDisk
			}
			return store.MemoryStore.Swap(ctx, version, rec)
		}
		g := guardOn(t, store)
		_, err := idem.Do(t.Context(), g, order, pay, sleeps(3*lease, 1, nil))
		require.NoError(t, err)
		require.Zero(t, g.Counters().LeaseLost)
	})
}
