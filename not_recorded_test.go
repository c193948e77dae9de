package idem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestResultSurvivesAFailedWrite(t *testing.T) {
	t.Parallel()
	plain := errors.New("no such customer")
	tests := []struct {
		name string
		err  error
	}{{"success", nil}, {"permanent", idem.Permanent(plain)}, {"unknown", idem.Unknown(plain)}, {"released", plain}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := newHookStore()
			store.onSwap = func(context.Context, uint64, idem.Record) (idem.Record, error) { return idem.Record{}, errDisk }
			store.onDelete = func(context.Context, idem.Key, uint64) error { return errDisk }
			g := guardOn(t, store)
			res, err := idem.Do(t.Context(), g, order, pay, returns("value", tt.err))
			require.Equal(t, "value", res.Value)
			require.False(t, res.Replayed)
			var lost *idem.NotRecordedError
			require.ErrorAs(t, err, &lost)
			require.ErrorIs(t, err, idem.ErrNotRecorded)
			require.ErrorIs(t, err, errDisk)
			require.True(t, tt.err == nil || errors.Is(err, tt.err))
			require.Equal(t, idem.NotRecordedError{Key: order, Store: errDisk, Func: tt.err}, *lost)
			require.Equal(t, idem.Processing, stored(t, store.MemoryStore).State)
			require.EqualValues(t, 1, g.Counters().StoreError)
			_, err = idem.Do(t.Context(), g, order, pay, mustNotRun[string](t))
			require.ErrorIs(t, err, idem.ErrInProgress, "until the lease is over")
		})
	}
}

func TestEndIsWrittenOnceTheFileIsFree(t *testing.T) {
	t.Parallel()
	for _, end := range []error{nil, errors.New("nothing happened")} {
		synctest.Test(t, func(t *testing.T) {
			store := newHookStore()
			locked := 5
			busy := func() bool { locked--; return locked >= 0 }
			store.onSwap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
				if busy() {
					return idem.Record{}, &idem.LockedError{Path: "idem.db"}
				}
				return store.MemoryStore.Swap(ctx, version, rec)
			}
			store.onDelete = func(ctx context.Context, key idem.Key, version uint64) error {
				if busy() {
					return &idem.LockedError{Path: "idem.db"}
				}
				return store.MemoryStore.Delete(ctx, key, version)
			}
			_, err := idem.Do(t.Context(), guardOn(t, store), order, pay, returns("value", end))
			require.ErrorIs(t, err, end)
			require.NotErrorIs(t, err, idem.ErrNotRecorded)
			rec, err := store.Get(t.Context(), order)
			if end != nil {
				require.ErrorIs(t, err, idem.ErrNotFound)
				return
			}
			require.NoError(t, err)
			require.Equal(t, idem.Completed, rec.State)
		})
	}
}

func TestEndGivesUpOnAFileLockedForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newHookStore()
		store.onSwap = func(context.Context, uint64, idem.Record) (idem.Record, error) {
			return idem.Record{}, &idem.LockedError{Path: "idem.db"}
		}
		res, err := idem.Do(t.Context(), guardOn(t, store), order, pay, returns("value", nil))
		require.ErrorIs(t, err, idem.ErrNotRecorded)
		require.ErrorIs(t, err, idem.ErrLocked)
		require.Equal(t, "value", res.Value)
	})
}

func TestEndOfACallerThatHangsUpIsRecorded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		err   error
		state idem.State
	}{{"done", nil, idem.Completed}, {"failed", idem.Permanent(errDisk), idem.Failed}, {"cut off", context.Canceled, idem.Interrupted}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := memoryGuard(t)
			ctx, hangUp := context.WithCancel(t.Context())
			res, err := idem.Do(ctx, g, order, pay, func(ctx context.Context, _ *idem.Attempt) (string, error) {
				hangUp()
				<-ctx.Done()
				return "value", tt.err
			})
			require.ErrorIs(t, err, tt.err)
			require.NotErrorIs(t, err, idem.ErrNotRecorded)
			require.Equal(t, "value", res.Value)
			require.Equal(t, tt.state, stored(t, g.Store()).State)
		})
	}
}

func TestEndedCallerClaimsNothing(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	store := newHookStore()
	g := guardOn(t, store)
	_, err := idem.Do(ended, g, order, pay, mustNotRun[int](t))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, store.writes.Load())
	require.Zero(t, g.Counters().StoreError, "not the store's failure")

	_, err = idem.Do(t.Context(), g, order, pay, returns(1, nil))
	require.NoError(t, err)
	_, err = idem.Do(ended, g, order, pay, mustNotRun[int](t))
	require.ErrorIs(t, err, context.Canceled)
}

// A claim whose write was made although it reported an error is taken back.
func TestClaimOfUnknownOutcomeIsWithdrawn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  func(hangUp context.CancelFunc) error
	}{
		{"the caller hung up", func(hangUp context.CancelFunc) error { hangUp(); return context.Canceled }},
		{"the store failed", func(context.CancelFunc) error { return errDisk }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := newHookStore()
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			store.onCreate = func(ctx context.Context, rec idem.Record) (idem.Record, error) {
				_, err := store.MemoryStore.Create(ctx, rec)
				require.NoError(t, err)
				return idem.Record{}, tt.err(hangUp)
			}
			g := guardOn(t, store)
			_, err := idem.Do(ctx, g, order, pay, mustNotRun[int](t))
			require.Error(t, err)
			_, err = store.Get(t.Context(), order)
			require.ErrorIs(t, err, idem.ErrNotFound)
			store.onCreate = nil
			_, err = idem.Do(t.Context(), g, order, pay, returns(1, nil))
			require.NoError(t, err)
		})
	}
}

// A takeover that is taken back leaves the interruption as it was, so that a
// stricter policy still sees it.
func TestTakeoverOfUnknownOutcomeIsPutBack(t *testing.T) {
	t.Parallel()
	store := newHookStore()
	g := guardOn(t, store)
	before := seed(t, store.MemoryStore, idem.Interrupted, 0, time.Hour)
	fails := true
	store.onSwap = func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
		rec, err := store.MemoryStore.Swap(ctx, version, rec)
		if fails {
			fails = false
			return idem.Record{}, errDisk
		}
		return rec, err
	}
	_, err := idem.Do(t.Context(), g, order, pay, mustNotRun[int](t), rerun())
	require.ErrorIs(t, err, errDisk)
	after := stored(t, store)
	require.Greater(t, after.Version, before.Version)
	after.Version, after.Size = before.Version, before.Size
	require.Equal(t, before, after)
	_, err = idem.Do(t.Context(), g, order, pay, mustNotRun[int](t))
	require.ErrorIs(t, err, idem.ErrInterrupted)
}
