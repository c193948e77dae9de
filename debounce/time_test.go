package debounce_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/debounce"
)

// TestInterval: refused calls do not extend it, and it ends to the microsecond.
func TestInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDebouncer(t, newMemory(t), 5*time.Second)
		require.True(t, allow(t, d, "alice").Allowed)
		for left := 5 * time.Second; left > 0; left -= time.Second {
			require.Equal(t, debounce.Decision{RetryAfter: left}, allow(t, d, "alice"))
			time.Sleep(time.Second - time.Microsecond)
			require.Equal(t, debounce.Decision{RetryAfter: left - time.Second + time.Microsecond}, allow(t, d, "alice"))
			time.Sleep(time.Microsecond)
		}
		require.True(t, allow(t, d, "alice").Allowed)
		require.False(t, allow(t, d, "alice").Allowed)
	})
}

// TestIntervalChanged: what was let through keeps the interval it was let through
// with.
func TestIntervalChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t)
		long, short := newDebouncer(t, store, time.Hour), newDebouncer(t, store, time.Second)
		require.True(t, allow(t, long, "alice").Allowed)
		time.Sleep(time.Minute)
		require.Equal(t, debounce.Decision{RetryAfter: 59 * time.Minute}, allow(t, short, "alice"))
		time.Sleep(59 * time.Minute)
		require.True(t, allow(t, short, "alice").Allowed)
		require.Equal(t, debounce.Decision{RetryAfter: time.Second}, allow(t, long, "alice"))
	})
}

// TestDowntime: the store keeps a record that ran out while it was closed, and
// the interval is over all the same.
func TestDowntime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	synctest.Test(t, func(t *testing.T) {
		open := func() *idem.BoltStore {
			s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
			require.NoError(t, err)
			return s
		}
		s := open()
		require.True(t, allow(t, newDebouncer(t, s, time.Minute), "alice").Allowed)
		require.NoError(t, s.Close())

		time.Sleep(time.Second)
		s = open()
		require.False(t, allow(t, newDebouncer(t, s, time.Minute), "alice").Allowed)
		require.NoError(t, s.Close())

		time.Sleep(time.Hour)
		s = open()
		_, err := s.Get(t.Context(), idem.Key{Scope: "resend", ID: "alice"})
		require.NoError(t, err, "it is kept for a while, else this tests nothing")
		d := newDebouncer(t, s, time.Minute)
		require.True(t, allow(t, d, "alice").Allowed)
		require.Equal(t, debounce.Decision{RetryAfter: time.Minute}, allow(t, d, "alice"))
		require.NoError(t, s.Close())
	})
}

// TestConcurrentAfterDowntime: all callers meet a record that is kept beyond its
// time.
func TestConcurrentAfterDowntime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
		require.NoError(t, err)
		require.True(t, allow(t, newDebouncer(t, s, time.Second), "alice").Allowed)
		require.NoError(t, s.Close())
		time.Sleep(time.Minute)
		s, err = idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
		require.NoError(t, err)
		d := newDebouncer(t, s, 24*time.Hour)
		var allowed atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				decision, err := d.Allow(t.Context(), "alice")
				if err != nil {
					t.Error(err)
				}
				if decision.Allowed {
					allowed.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, allowed.Load())
		require.NoError(t, s.Close())
	})
}

// staleStore answers the first Create with a record that is kept beyond its time,
// and is removed by then.
type staleStore struct {
	*idem.MemoryStore
	asked bool
}

func (s *staleStore) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	if s.asked {
		return s.MemoryStore.Create(ctx, rec)
	}
	s.asked = true
	rec.Version, rec.ExpiresAt = 1, rec.CreatedAt.Add(-time.Second)
	return rec, idem.ErrConflict
}

func TestRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	d := newDebouncer(t, &staleStore{MemoryStore: newMemory(t)}, time.Hour)
	require.True(t, allow(t, d, "alice").Allowed)
	require.False(t, allow(t, d, "alice").Allowed)
}
