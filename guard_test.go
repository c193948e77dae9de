package idem_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// order is the key most tests of the guard work on.
var order = idem.Key{Scope: "charge", ID: "order-1"}

// hookStore is a MemoryStore whose methods a test can take over. A hook may
// call the embedded store. Hooks are set before the store is used.
type hookStore struct {
	*idem.MemoryStore
	onGet    func(ctx context.Context, key idem.Key) (idem.Record, error)
	onCreate func(ctx context.Context, rec idem.Record) (idem.Record, error)
	onSwap   func(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error)
	onDelete func(ctx context.Context, key idem.Key, version uint64) error

	writes atomic.Int64 // calls of Create, Swap and Delete
}

func newHookStore() *hookStore {
	return &hookStore{MemoryStore: idem.NewMemoryStore(idem.MemoryConfig{})}
}

func (s *hookStore) Get(ctx context.Context, key idem.Key) (idem.Record, error) {
	if s.onGet != nil {
		return s.onGet(ctx, key)
	}
	return s.MemoryStore.Get(ctx, key)
}

func (s *hookStore) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	s.writes.Add(1)
	if s.onCreate != nil {
		return s.onCreate(ctx, rec)
	}
	return s.MemoryStore.Create(ctx, rec)
}

func (s *hookStore) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	s.writes.Add(1)
	if s.onSwap != nil {
		return s.onSwap(ctx, version, rec)
	}
	return s.MemoryStore.Swap(ctx, version, rec)
}

func (s *hookStore) Delete(ctx context.Context, key idem.Key, version uint64) error {
	s.writes.Add(1)
	if s.onDelete != nil {
		return s.onDelete(ctx, key, version)
	}
	return s.MemoryStore.Delete(ctx, key, version)
}

func guardOn(t testing.TB, store idem.Store, opts ...idem.Option) *idem.Guard {
	t.Helper()
	g, err := idem.New(store, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func memoryGuard(t testing.TB, opts ...idem.Option) *idem.Guard {
	t.Helper()
	return guardOn(t, idem.NewMemoryStore(idem.MemoryConfig{}), opts...)
}

// returns is a guarded function that ends at once.
func returns[T any](v T, err error) func(context.Context, *idem.Attempt) (T, error) {
	return func(context.Context, *idem.Attempt) (T, error) { return v, err }
}

// mustNotRun is a guarded function for calls that have to be answered without.
func mustNotRun[T any](t testing.TB) func(context.Context, *idem.Attempt) (T, error) {
	return func(context.Context, *idem.Attempt) (v T, err error) {
		t.Error("the function ran")
		return v, nil
	}
}

func rerun() idem.CallOption {
	p := idem.API
	p.OnInterrupted = idem.Rerun()
	return idem.WithPolicy(p)
}

// stored reads the record of the key that most tests use.
func stored(t testing.TB, store idem.Store) idem.Record {
	t.Helper()
	rec, err := store.Get(t.Context(), order)
	require.NoError(t, err)
	return rec
}

func TestNewNeedsASecret(t *testing.T) {
	t.Parallel()
	bare := struct{ idem.Store }{idem.NewMemoryStore(idem.MemoryConfig{})}
	_, err := idem.New(bare)
	require.ErrorContains(t, err, "WithSecret")
	_, err = idem.New(bare, idem.WithSecret([]byte("fifteen bytes..")))
	require.ErrorContains(t, err, "at least 16")

	secret := []byte("sixteen bytes...")
	g, err := idem.New(bare, idem.WithSecret(secret))
	require.NoError(t, err)
	clear(secret) // the guard has its own copy
	res, err := idem.Do(t.Context(), g, order, "input", returns(1, nil))
	require.NoError(t, err)
	want, err := idem.NewFingerprint([]byte("sixteen bytes..."), "input")
	require.NoError(t, err)
	require.True(t, want.Equal(res.Record.Fingerprint))
	require.Same(t, bare.Store, g.Store().(struct{ idem.Store }).Store)
}

func TestClosedGuardStartsNothing(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	require.NoError(t, g.Close())
	require.NoError(t, g.Close())
	_, err := idem.Do(t.Context(), g, order, nil, mustNotRun[int](t))
	require.ErrorIs(t, err, idem.ErrClosed)
	_, err = g.Store().Get(t.Context(), order)
	require.ErrorIs(t, err, idem.ErrNotFound, "New does not own the store")
}

func TestCloseWaitsForRunningAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, err := idem.Open(filepath.Join(t.TempDir(), "idem.db"))
		require.NoError(t, err)
		began := time.Now()
		var running sync.WaitGroup
		for _, id := range []string{"a", "b"} {
			running.Go(func() {
				_, err := idem.Do(context.Background(), g, idem.Key{Scope: "s", ID: id}, nil, func(context.Context, *idem.Attempt) (int, error) {
					time.Sleep(10 * time.Minute)
					return 1, nil
				})
				if err != nil {
					t.Errorf("Do(%s): %v", id, err)
				}
			})
		}
		synctest.Wait()
		require.NoError(t, g.Close())
		require.Equal(t, 10*time.Minute, time.Since(began))
		running.Wait()
	})
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "idem.db")
		g, err := idem.Open(path)
		require.NoError(t, err)
		var late error
		var running sync.WaitGroup
		running.Go(func() {
			_, late = idem.Do(context.Background(), g, order, nil, func(context.Context, *idem.Attempt) (int, error) {
				time.Sleep(time.Minute)
				return 1, nil
			})
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, g.Shutdown(ctx), context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(began))
		running.Wait()
		require.ErrorIs(t, late, idem.ErrNotRecorded)
		require.ErrorIs(t, late, idem.ErrClosed)

		g, err = idem.Open(path)
		require.NoError(t, err)
		_, err = idem.Do(t.Context(), g, order, nil, mustNotRun[int](t))
		require.ErrorIs(t, err, idem.ErrInterrupted)
		require.NoError(t, g.Close())
	})
}

func TestOpenStopsWhatItStartedWhenItFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	_, err := idem.Open(path, idem.WithPolicy(idem.Policy{}))
	require.ErrorIs(t, err, idem.ErrInvalidPolicy)
	require.NoFileExists(t, path)
	_, err = idem.Open(path, idem.WithJanitor(idem.JanitorConfig{Batch: -1}))
	require.ErrorContains(t, err, "janitor")

	store, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{LockTimeout: -1})
	require.NoError(t, err, "the failed Open let go of the file")
	require.NoError(t, store.Close())
}

func TestReadOnlyGuardReplaysButDoesNotRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	g, err := idem.Open(path)
	require.NoError(t, err)
	_, err = idem.Do(t.Context(), g, order, nil, returns(7, nil))
	require.NoError(t, err)
	require.NoError(t, g.Close())

	g, err = idem.Open(path, idem.WithBolt(idem.BoltConfig{ReadOnly: true}))
	require.NoError(t, err)
	res, err := idem.Do(t.Context(), g, order, nil, mustNotRun[int](t))
	require.NoError(t, err)
	require.Equal(t, 7, res.Value)
	_, err = idem.Do(t.Context(), g, idem.Key{Scope: "charge", ID: "other"}, nil, mustNotRun[int](t))
	require.ErrorIs(t, err, idem.ErrReadOnly)
	require.NoError(t, g.Close())
}

var errDisk = errors.New("disk gone")
