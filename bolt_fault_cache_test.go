package idem

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gate stops one caller where it is asked to, once.
type gate struct {
	armed   atomic.Bool
	reached chan struct{}
	release chan struct{}
	open    func()
}

// newGate makes a gate that stops nobody any more when the test ends.
func newGate(t *testing.T) *gate {
	g := &gate{reached: make(chan struct{}), release: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.release) })
	t.Cleanup(g.open)
	return g
}

func (g *gate) pass() {
	if g.armed.CompareAndSwap(true, false) {
		g.reached <- struct{}{}
		<-g.release
	}
}

// gatedEngine stops a read that has seen a record, and a commit that is durable,
// before anybody else hears of it.
type gatedEngine struct {
	engine
	afterRead, afterCommit *gate
}

func (e *gatedEngine) get(key []byte, fn func([]byte) error) error {
	err := e.engine.get(key, fn)
	e.afterRead.pass()
	return err
}

func (e *gatedEngine) commit(b *batch) error {
	err := e.engine.commit(b)
	e.afterCommit.pass()
	return err
}

func openGated(t *testing.T) (*BoltStore, *gatedEngine) {
	t.Helper()
	path := faultFile(t, 1, 10)
	e := &gatedEngine{}
	s := openFault(t, path, BoltConfig{engine: func(inner engine) engine { e.engine = inner; return e }})
	e.afterRead, e.afterCommit = newGate(t), newGate(t) // opened before the store is closed
	return s, e
}

// TestSlowReaderAndCache injects a reader that has read a record and is slow to
// go on, while the record is changed. What it read must not end up in the cache.
func TestSlowReaderAndCache(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(t *testing.T, s *BoltStore, old Record)
		want   string // "" for absent
	}{
		{"swapped", func(t *testing.T, s *BoltStore, old Record) {
			_, err := s.Swap(t.Context(), old.Version, completed("k0", "new"))
			require.NoError(t, err)
		}, "new"},
		{"deleted", func(t *testing.T, s *BoltStore, old Record) {
			require.NoError(t, s.Delete(t.Context(), old.Key, old.Version))
		}, ""},
		{"deleted and created", func(t *testing.T, s *BoltStore, old Record) {
			require.NoError(t, s.Delete(t.Context(), old.Key, old.Version))
			_, err := s.Create(t.Context(), completed("k0", "newer"))
			require.NoError(t, err)
		}, "newer"},
		{"taken over", func(t *testing.T, s *BoltStore, old Record) {
			_, err := s.Swap(t.Context(), old.Version, faultRecord("k0", Processing, nil, "o"))
			require.NoError(t, err)
		}, "processing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, e := openGated(t)
			e.afterRead.armed.Store(true)
			slow := make(chan Record, 1)
			go func() {
				rec, err := s.Get(t.Context(), faultKey("k0"))
				if err != nil {
					t.Errorf("slow reader: %v", err)
				}
				slow <- rec
			}()
			<-e.afterRead.reached
			old, err := s.Get(t.Context(), faultKey("k0")) // also fills the cache
			require.NoError(t, err)
			tt.change(t, s, old)
			e.afterRead.open()
			require.Equal(t, old, <-slow, "the slow reader read before the change")

			rec, err := s.Get(t.Context(), faultKey("k0"))
			if tt.want == "" {
				require.ErrorIs(t, err, ErrNotFound)
				return
			}
			require.NoError(t, err)
			if rec.State == Processing {
				rec.Value = []byte(rec.State.String())
			}
			require.Equal(t, tt.want, string(rec.Value))
		})
	}
}

// TestCacheDuringCommit stops a commit after it has become durable and before
// the store hears of it, with a slow reader of the old record under way. Once
// one reader has seen the new record none may see the old one, from the cache.
func TestCacheDuringCommit(t *testing.T) {
	t.Parallel()
	for _, cached := range []bool{false, true} {
		t.Run(fmt.Sprintf("cached %t", cached), func(t *testing.T) {
			t.Parallel()
			s, e := openGated(t)
			e.afterRead.armed.Store(true)
			slow := make(chan error, 1)
			go func() {
				_, err := s.Get(t.Context(), faultKey("k0"))
				slow <- err
			}()
			<-e.afterRead.reached // it holds the old record
			if cached {
				_, err := s.Get(t.Context(), faultKey("k0"))
				require.NoError(t, err)
			}
			e.afterCommit.armed.Store(true)
			swapped := make(chan error, 1)
			go func() {
				_, err := s.Swap(t.Context(), 1, completed("k0", "new"))
				swapped <- err
			}()
			<-e.afterCommit.reached // the new record is durable
			first, err := s.Get(t.Context(), faultKey("k0"))
			require.NoError(t, err)
			e.afterRead.open()
			require.NoError(t, <-slow)
			second, err := s.Get(t.Context(), faultKey("k0"))
			require.NoError(t, err)
			require.GreaterOrEqual(t, second.Version, first.Version, "time went back")
			e.afterCommit.open()
			require.NoError(t, <-swapped)
			third, err := s.Get(t.Context(), faultKey("k0"))
			require.NoError(t, err)
			require.Equal(t, "new", string(third.Value))
		})
	}
}

// TestCacheAfterRefusedCommit injects a commit that finds no space: the cache
// must go on answering with the record that is still the durable one.
func TestCacheAfterRefusedCommit(t *testing.T) {
	t.Parallel()
	refuse := false
	s := openFault(t, faultFile(t, 1, 10), aroundCommits(func(commit func() error) error {
		if refuse {
			return errNoSpace
		}
		return commit()
	}))
	old, err := s.Get(t.Context(), faultKey("k0"))
	require.NoError(t, err)
	refuse = true
	_, err = s.Swap(t.Context(), old.Version, completed("k0", "new"))
	require.ErrorIs(t, err, ErrFull)
	require.ErrorIs(t, s.Delete(t.Context(), old.Key, old.Version), ErrFull)
	for range 2 { // once to fill the cache, once from it
		rec, err := s.Get(t.Context(), faultKey("k0"))
		require.NoError(t, err)
		require.Equal(t, old, rec)
	}
	_, hit := s.cache.get(old.Key)
	require.True(t, hit, "the key must be cacheable again")
	refuse = false
	require.NoError(t, s.Delete(t.Context(), old.Key, old.Version))
	_, err = s.Get(t.Context(), old.Key)
	require.ErrorIs(t, err, ErrNotFound)
}

// TestCacheExpiry: a cached record stops answering when its time is over, and
// one that Expire has removed is gone from the cache too.
func TestCacheExpiry(t *testing.T) {
	t.Parallel()
	s := openFault(t, faultPath(t), BoltConfig{})
	rec := completed("k", "v")
	rec.ExpiresAt = s.Now().Add(30 * time.Millisecond)
	_, err := s.Create(t.Context(), rec)
	require.NoError(t, err)
	_, hit := s.cache.get(rec.Key)
	require.True(t, hit)
	for err == nil {
		_, err = s.Get(t.Context(), rec.Key)
	}
	require.ErrorIs(t, err, ErrNotFound)
	require.False(t, s.Now().Before(rec.ExpiresAt))
	n, err := s.Expire(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, hit = s.cache.get(rec.Key)
	require.False(t, hit)
}

// TestCacheStress lets readers race with a writer that swaps, deletes and
// creates one key, with a cache so small that it also evicts: no reader may see
// a version older than one acknowledged before it began.
func TestCacheStress(t *testing.T) {
	t.Parallel()
	s := openFault(t, faultPath(t), BoltConfig{CacheBytes: 4 << 10})
	var acked, reads, deleted atomic.Uint64 // deleted: above which version the key was removed
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for last := uint64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				runtime.Gosched() // leave the writer a processor
				floor, gone := acked.Load(), deleted.Load()
				rec, err := s.Get(t.Context(), faultKey("k"))
				reads.Add(1)
				switch {
				case err == nil && (rec.Version < floor || rec.Version < last || rec.Version <= gone):
					t.Errorf("read version %d, after %d was acknowledged, %d was read, %d was deleted", rec.Version, floor, last, gone)
					return
				case err == nil:
					last = rec.Version
				case !errors.Is(err, ErrNotFound):
					t.Errorf("Get: %v", err)
					return
				}
			}
		})
	}
	for i := range 60 {
		rec, err := s.Create(t.Context(), completed("k", fmt.Sprint(i)))
		require.NoError(t, err)
		acked.Store(rec.Version)
		rec, err = s.Swap(t.Context(), rec.Version, completed("k", fmt.Sprint(i)))
		require.NoError(t, err)
		acked.Store(rec.Version)
		require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
		deleted.Store(rec.Version)
	}
	close(stop)
	readers.Wait()
	require.Greater(t, reads.Load(), uint64(200))
}
