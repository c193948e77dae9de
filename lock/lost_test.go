package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/lock"
)

// failingStore refuses writes of one kind while it is told to.
type failingStore struct {
	*idem.MemoryStore
	mu                sync.Mutex
	noSwaps, noDelete bool
}

var errDown = errors.New("the store is down")

func (s *failingStore) set(noSwaps, noDelete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noSwaps, s.noDelete = noSwaps, noDelete
}

func (s *failingStore) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noSwaps {
		return idem.Record{}, errDown
	}
	return s.MemoryStore.Swap(ctx, version, rec)
}

func (s *failingStore) Delete(ctx context.Context, key idem.Key, version uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noDelete {
		return errDown
	}
	return s.MemoryStore.Delete(ctx, key, version)
}

// resource is written to under the lock, and remembers the highest fence.
type resource struct {
	fence uint64
	by    string
}

var errStale = errors.New("a later holder has written")

func (r *resource) write(fence uint64, by string) error {
	if fence < r.fence {
		return errStale
	}
	r.fence, r.by = fence, by
	return nil
}

// TestLostLease: a holder that cannot renew is told in time, its successor has a
// higher fence, and its late write is refused.
func TestLostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 12 * time.Second
		store := &failingStore{MemoryStore: newMemory(t)}
		paused, other := newLocks(t, store, lock.WithTTL(ttl)), newLocks(t, store.MemoryStore, lock.WithTTL(ttl))
		old := take(t, paused, "a")
		var r resource
		require.NoError(t, r.write(old.Fence(), "old"))
		store.set(true, false)

		waiting := make(chan *lock.Held)
		go func() {
			h, err := other.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			waiting <- h
		}()
		began := time.Now()
		<-old.Lost()
		require.Less(t, time.Since(began), ttl, "before anybody else may have it")
		require.ErrorIs(t, old.Err(), lock.ErrLost)
		require.ErrorIs(t, old.Err(), idem.ErrLeaseLost)
		require.ErrorIs(t, old.Err(), errDown)
		next := <-waiting
		require.GreaterOrEqual(t, time.Since(began), ttl)
		require.Greater(t, next.Fence(), old.Fence())
		require.NoError(t, r.write(next.Fence(), "next"))
		require.Equal(t, errStale, r.write(old.Fence(), "old"))
		require.Equal(t, "next", r.by)

		store.set(false, false)
		for range 2 {
			require.Equal(t, old.Err(), old.Unlock(t.Context()))
		}
		require.NoError(t, next.Err(), "it is not the old one's to give back")
		require.NoError(t, next.Unlock(t.Context()))
	})
}

// TestUnlockAfterPause: while the holder stood still its record was removed, as by
// somebody who took the lock over and gave it back. Unlock comes before any
// renewal could notice.
func TestUnlockAfterPause(t *testing.T) {
	t.Parallel()
	for _, retaken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemory(t)
			l := newLocks(t, store)
			old := take(t, l, "a")
			rec, err := store.Get(t.Context(), idem.Key{Scope: "jobs", ID: "a"})
			require.NoError(t, err)
			require.NoError(t, store.Delete(t.Context(), rec.Key, rec.Version))
			if retaken {
				next := take(t, l, "a")
				require.Greater(t, next.Fence(), old.Fence())
				defer func() { require.NoError(t, next.Unlock(t.Context())) }()
			}
			require.NoError(t, old.Err(), "it cannot know yet")
			err = old.Unlock(t.Context())
			require.ErrorIs(t, err, lock.ErrLost)
			require.ErrorIs(t, err, idem.ErrLeaseLost)
			require.True(t, closed(old.Lost()))
			require.Equal(t, err, old.Err())
		})
	}
}

// TestRemovedRecord: a lock whose record was removed is lost at the next renewal.
func TestRemovedRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t)
		l := newLocks(t, store, lock.WithTTL(12*time.Second))
		h := take(t, l, "a")
		rec, err := store.Get(t.Context(), idem.Key{Scope: "jobs", ID: "a"})
		require.NoError(t, err)
		require.NoError(t, store.Delete(t.Context(), rec.Key, rec.Version))
		began := time.Now()
		<-h.Lost()
		require.Equal(t, 4*time.Second, time.Since(began))
		require.ErrorContains(t, h.Unlock(t.Context()), "removed")
		require.NoError(t, take(t, l, "a").Unlock(t.Context()))
	})
}

// TestUnlockFails: a lock that cannot be given back is free when its lease is over.
func TestUnlockFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &failingStore{MemoryStore: newMemory(t)}
		l := newLocks(t, store, lock.WithTTL(10*time.Second))
		h := take(t, l, "a")
		store.set(false, true)
		err := h.Unlock(t.Context())
		require.ErrorIs(t, err, errDown)
		require.ErrorIs(t, err, idem.ErrNotRecorded)
		require.NotErrorIs(t, err, lock.ErrLost)
		require.ErrorContains(t, err, `unlock "a"`)
		require.Equal(t, lock.ErrReleased, h.Err())
		requireHeld(t, l, "a")
		store.set(false, false)
		next, err := l.Lock(t.Context(), "a")
		require.NoError(t, err)
		require.Greater(t, next.Fence(), h.Fence())
		require.NoError(t, next.Unlock(t.Context()))
	})
}

// TestShutdown: a guard that is shut down takes the lock away.
func TestShutdown(t *testing.T) {
	t.Parallel()
	guard, err := idem.New(newMemory(t))
	require.NoError(t, err)
	l, err := lock.New(guard, "jobs")
	require.NoError(t, err)
	h := take(t, l, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, guard.Shutdown(ctx), context.Canceled)
	<-h.Lost()
	require.ErrorIs(t, h.Unlock(t.Context()), lock.ErrLost)
}
