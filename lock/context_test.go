package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/lock"
)

// TestHeldForLong: a lock is renewed, and the end of the context that took it does
// not end it.
func TestHeldForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLocks(t, newMemory(t), lock.WithTTL(10*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h, err := l.Lock(ctx, "a")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		require.NoError(t, h.Err())
		require.False(t, closed(h.Lost()))
		requireHeld(t, l, "a")
		require.NoError(t, h.Unlock(t.Context()))
	})
}

func TestContextEndsWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t)
		l := newLocks(t, store)
		h := take(t, l, "a")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		none, err := l.Lock(ctx, "a")
		require.Equal(t, time.Minute, time.Since(began))
		require.ErrorIs(t, err, lock.ErrHeld)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
		require.Nil(t, none)

		none, err = l.Lock(ctx, "b") // it has ended before
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, lock.ErrHeld)
		require.Nil(t, none)
		_, err = store.Get(t.Context(), idem.Key{Scope: "jobs", ID: "b"})
		require.ErrorIs(t, err, idem.ErrNotFound)

		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, take(t, l, "a").Unlock(t.Context()))
	})
}

// TestContextEndsAtTheGoal: the context ends while the lock is being taken. It is
// not kept.
func TestContextEndsAtTheGoal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store := &hookedStore{MemoryStore: newMemory(t), created: cancel}
	l := newLocks(t, store)
	h, err := l.Lock(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, h)
	store.created = nil
	require.NoError(t, take(t, l, "a").Unlock(t.Context()))
}

// TestUnlockWithEndedContext: the lock is given back without being waited for.
func TestUnlockWithEndedContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &hookedStore{MemoryStore: newMemory(t)}
		l := newLocks(t, store)
		h := take(t, l, "a")
		release := make(chan struct{})
		store.deleting = func() { <-release }
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, h.Unlock(ctx), context.Canceled)
		synctest.Wait()
		close(release)
		require.NoError(t, h.Unlock(t.Context()))
		for range 20 {
			require.NoError(t, h.Unlock(ctx), "what became of it is known")
		}
		require.NoError(t, take(t, l, "a").Unlock(t.Context()))
	})
}

// hookedStore calls back at the moments that the tests are about.
type hookedStore struct {
	*idem.MemoryStore
	created, deleting func()
}

func (s *hookedStore) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	stored, err := s.MemoryStore.Create(ctx, rec)
	if s.created != nil {
		s.created()
		<-ctx.Done()
	}
	return stored, err
}

func (s *hookedStore) Delete(ctx context.Context, key idem.Key, version uint64) error {
	if s.deleting != nil {
		s.deleting()
	}
	return s.MemoryStore.Delete(ctx, key, version)
}
