package debounce_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/debounce"
)

// stores are the kinds of stores that everything must work on.
var stores = []struct {
	name string
	open func(t *testing.T, path string) idem.Store
}{
	{"memory", func(t *testing.T, _ string) idem.Store { return newMemory(t) }},
	{"bolt", func(t *testing.T, path string) idem.Store {
		s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}},
	{"transient", func(t *testing.T, path string) idem.Store {
		s, err := idem.OpenTransient(t.Context(), path, idem.BoltConfig{LockTimeout: time.Minute})
		require.NoError(t, err)
		return s
	}},
}

func newMemory(t *testing.T) *idem.MemoryStore {
	s := idem.NewMemoryStore(idem.MemoryConfig{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newDebouncer(t *testing.T, store idem.Store, every time.Duration) *debounce.Debouncer {
	t.Helper()
	d, err := debounce.New(store, "resend", every)
	require.NoError(t, err)
	return d
}

func allow(t *testing.T, d *debounce.Debouncer, name string) debounce.Decision {
	t.Helper()
	decision, err := d.Allow(t.Context(), name)
	require.NoError(t, err)
	return decision
}

func TestAllow(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			s := store.open(t, filepath.Join(t.TempDir(), "idem.db"))
			d := newDebouncer(t, s, time.Hour)
			require.Equal(t, debounce.Decision{Allowed: true}, allow(t, d, "alice"))
			again := allow(t, d, "alice")
			require.False(t, again.Allowed)
			require.Positive(t, again.RetryAfter)
			require.LessOrEqual(t, again.RetryAfter, time.Hour)
			require.True(t, allow(t, d, "bob").Allowed)

			other, err := debounce.New(s, "alert", time.Hour)
			require.NoError(t, err)
			require.True(t, allow(t, other, "alice").Allowed)

			rec, err := s.Get(t.Context(), idem.Key{Scope: "resend", ID: "alice"})
			require.NoError(t, err)
			require.Equal(t, "debounce", rec.Kind)
			require.Equal(t, idem.Completed, rec.State)
			require.Equal(t, rec.CreatedAt.Add(time.Hour), rec.ExpiresAt)
		})
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	for _, store := range stores[:2] {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			d := newDebouncer(t, store.open(t, filepath.Join(t.TempDir(), "idem.db")), time.Hour)
			var allowed, refused atomic.Int32
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					switch decision, err := d.Allow(t.Context(), "alice"); {
					case err != nil:
						t.Error(err)
					case decision.Allowed:
						allowed.Add(1)
					case decision.RetryAfter > 0 && decision.RetryAfter <= time.Hour:
						refused.Add(1)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, allowed.Load())
			require.EqualValues(t, 99, refused.Load())
		})
	}
}

// countingStore counts what may write.
type countingStore struct {
	*idem.MemoryStore
	created, refused, swapped int
}

func (s *countingStore) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	stored, err := s.MemoryStore.Create(ctx, rec)
	if err == nil {
		s.created++
	} else if errors.Is(err, idem.ErrConflict) {
		s.refused++
	}
	return stored, err
}

func (s *countingStore) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	s.swapped++
	return s.MemoryStore.Swap(ctx, version, rec)
}

func TestWrites(t *testing.T) {
	t.Parallel()
	store := &countingStore{MemoryStore: newMemory(t)}
	d := newDebouncer(t, store, time.Hour)
	for range 5 {
		allow(t, d, "alice")
	}
	require.Equal(t, []int{1, 4, 0}, []int{store.created, store.refused, store.swapped})
}

// TestTx: what a transaction lets through counts when it commits.
func TestTx(t *testing.T) {
	t.Parallel()
	store := stores[1].open(t, filepath.Join(t.TempDir(), "idem.db")).(*idem.BoltStore)
	changedMind := errors.New("changed its mind")
	within := func(result error) debounce.Decision {
		var decision debounce.Decision
		err := store.Update(t.Context(), func(tx *idem.Tx) error {
			decision = allow(t, newDebouncer(t, tx.Records(), time.Hour), "alice")
			return result
		})
		require.ErrorIs(t, err, result)
		return decision
	}
	require.True(t, within(changedMind).Allowed)
	require.True(t, within(nil).Allowed)
	require.False(t, within(nil).Allowed)
	require.False(t, allow(t, newDebouncer(t, store, time.Hour), "alice").Allowed)
}
