package lock_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/lock"
)

// stores are the kinds of stores that everything must work on.
var stores = []struct {
	name string
	open func(t *testing.T) idem.Store
}{
	{"memory", func(t *testing.T) idem.Store { return newMemory(t) }},
	{"bolt", func(t *testing.T) idem.Store { return openBolt(t, filepath.Join(t.TempDir(), "idem.db")) }},
	{"transient", func(t *testing.T) idem.Store { return openTransient(t, filepath.Join(t.TempDir(), "idem.db")) }},
}

func newMemory(t *testing.T) *idem.MemoryStore {
	s := idem.NewMemoryStore(idem.MemoryConfig{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openBolt(t *testing.T, path string) *idem.BoltStore {
	t.Helper()
	s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{LockTimeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openTransient(t *testing.T, path string) *idem.TransientStore {
	t.Helper()
	s, err := idem.OpenTransient(t.Context(), path, idem.BoltConfig{LockTimeout: time.Minute})
	require.NoError(t, err)
	return s
}

// newLocks makes locks whose guard is closed at the end, which hangs if a lock is
// still held.
func newLocks(t *testing.T, store idem.Store, opts ...lock.Option) *lock.Locks {
	t.Helper()
	guard, err := idem.New(store)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, guard.Close()) })
	l, err := lock.New(guard, "jobs", opts...)
	require.NoError(t, err)
	return l
}

func take(t *testing.T, l *lock.Locks, name string) *lock.Held {
	t.Helper()
	h, err := l.TryLock(t.Context(), name)
	require.NoError(t, err)
	return h
}

func requireHeld(t *testing.T, l *lock.Locks, name string) *lock.HeldError {
	t.Helper()
	h, err := l.TryLock(t.Context(), name)
	require.ErrorIs(t, err, lock.ErrHeld)
	require.ErrorIs(t, err, idem.ErrInProgress)
	require.Nil(t, h)
	var held *lock.HeldError
	require.ErrorAs(t, err, &held)
	return held
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			s := store.open(t)
			l := newLocks(t, s)
			h := take(t, l, "a")
			require.Equal(t, "a", h.Name())
			require.NoError(t, h.Err())
			rec, err := s.Get(t.Context(), idem.Key{Scope: "jobs", ID: "a"})
			require.NoError(t, err)
			require.Equal(t, "lock", rec.Kind)
			require.Equal(t, idem.Processing, rec.State)

			refused := requireHeld(t, l, "a")
			require.Equal(t, "a", refused.Name)
			require.Equal(t, rec.Owner, refused.Record.Owner)
			require.Contains(t, refused.Error(), rec.Owner)
			require.GreaterOrEqual(t, refused.RetryAfter, time.Second)
			require.NoError(t, take(t, l, "b").Unlock(t.Context()))

			require.NoError(t, h.Unlock(t.Context()))
			require.NoError(t, h.Unlock(t.Context()), "a second time")
			require.Equal(t, lock.ErrReleased, h.Err())
			require.False(t, closed(h.Lost()))
			_, err = s.Get(t.Context(), rec.Key)
			require.ErrorIs(t, err, idem.ErrNotFound)

			next, err := l.Lock(t.Context(), "a")
			require.NoError(t, err)
			require.Greater(t, next.Fence(), h.Fence())
			require.NoError(t, h.Unlock(t.Context()), "of the first, while the second holds it")
			require.NoError(t, next.Err())
			requireHeld(t, l, "a")
			require.NoError(t, next.Unlock(t.Context()))
		})
	}
}

// TestMutualExclusion: the race detector sees to it that the counter is not
// touched by two at once.
func TestMutualExclusion(t *testing.T) {
	t.Parallel()
	for _, store := range stores[:2] {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			l := newLocks(t, store.open(t))
			counter, fence := 0, uint64(0)
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					h, err := l.Lock(t.Context(), "counter")
					if err != nil {
						t.Error(err)
						return
					}
					if h.Fence() <= fence {
						t.Errorf("fence %d after %d", h.Fence(), fence)
					}
					fence = h.Fence()
					counter++
					if err := h.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.Equal(t, 50, counter)
		})
	}
}

// TestUnlockConcurrently: many calls give back one lock.
func TestUnlockConcurrently(t *testing.T) {
	t.Parallel()
	l := newLocks(t, newMemory(t))
	h := take(t, l, "a")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := h.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, take(t, l, "a").Unlock(t.Context()))
}
