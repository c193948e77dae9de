package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCloseDuringUse closes a store under callers that create, read, scan, swap,
// delete and expire: every call must end with its true outcome or ErrClosed, and
// what was acknowledged must be in the file.
func TestCloseDuringUse(t *testing.T) {
	t.Parallel()
	for range 10 {
		path := faultPath(t)
		s := openFault(t, path, BoltConfig{})
		var mu sync.Mutex
		acked := make(map[string]bool)
		allowed := func(err error) bool { return err == nil || isAny(err, ErrClosed, ErrNotFound) }
		var callers sync.WaitGroup
		running := make(chan struct{}, 1000)
		for caller := range 8 {
			callers.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("%d-%d", caller, i)
					rec, err := s.Create(t.Context(), completed(id, id))
					if err != nil {
						if !errors.Is(err, ErrClosed) {
							t.Errorf("Create: %v", err)
						}
						return
					}
					mu.Lock()
					acked[id] = true
					mu.Unlock()
					if _, err := s.Get(t.Context(), rec.Key); !allowed(err) {
						t.Errorf("Get: %v", err)
					}
					for _, err := range s.Scan(t.Context(), Query{Prefix: rec.Key.String()}) {
						if !allowed(err) {
							t.Errorf("Scan: %v", err)
						}
					}
					if _, err := s.Expire(t.Context(), 10); !allowed(err) {
						t.Errorf("Expire: %v", err)
					}
					select {
					case running <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 20 {
			<-running
		}
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		closers.Wait()
		callers.Wait()
		requireClosed(t, s)

		s = openFault(t, path, BoltConfig{LockTimeout: -1})
		got := contents(t, s)
		require.GreaterOrEqual(t, len(acked), 20)
		for id := range acked {
			require.Equal(t, "completed "+id, got[id])
		}
		require.Len(t, got, len(acked), "every create was answered")
		require.NoError(t, s.Close())
		requireSound(t, path)
	}
}

// requireClosed requires that every method of a closed store is ErrClosed.
func requireClosed(t *testing.T, s *BoltStore) {
	t.Helper()
	ctx := t.Context()
	_, err := s.Create(ctx, completed("x", ""))
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Swap(ctx, 1, completed("x", ""))
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Delete(ctx, faultKey("x"), 1), ErrClosed)
	_, err = s.Get(ctx, faultKey("x"))
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Expire(ctx, 1)
	require.ErrorIs(t, err, ErrClosed)
	for _, err := range s.Scan(ctx, Query{}) {
		require.ErrorIs(t, err, ErrClosed)
	}
	_, err = s.Info(ctx)
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Check(ctx)
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.History(ctx)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, s.Close(), "a second Close is nil")
}

// TestCloseDuringDo ends a guard while functions run, with no time to wait for
// them: they get ErrNotRecorded with their result, and their keys do not run
// again after a restart.
func TestCloseDuringDo(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	g, err := Open(path)
	require.NoError(t, err)
	const attempts = 5
	running, proceed, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	for i := range attempts {
		go func() {
			res, err := Do(t.Context(), g, faultKey(fmt.Sprint(i)), nil, func(context.Context, *Attempt) (int, error) {
				running <- struct{}{}
				<-proceed
				return 7, nil
			})
			if res.Value != 7 {
				err = errors.Join(err, errors.New("the result is lost"))
			}
			ended <- err
		}()
	}
	for range attempts {
		<-running
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Shutdown(over), context.Canceled)
	close(proceed)
	for range attempts {
		err := <-ended
		require.ErrorIs(t, err, ErrNotRecorded)
		require.ErrorIs(t, err, ErrClosed)
		require.NotContains(t, err.Error(), "lost")
	}
	g, err = Open(path, WithBolt(BoltConfig{LockTimeout: -1}))
	require.NoError(t, err)
	for i := range attempts {
		_, err := Do(t.Context(), g, faultKey(fmt.Sprint(i)), nil, func(context.Context, *Attempt) (int, error) {
			t.Error("it ran a second time")
			return 0, nil
		})
		require.ErrorIs(t, err, ErrInterrupted)
	}
	require.NoError(t, g.Close())
	requireSound(t, path)
}

// TestContextEndsWhileQueued holds the writer in a commit and ends the contexts
// of operations that wait behind it: nothing of them may be written.
func TestContextEndsWhileQueued(t *testing.T) {
	t.Parallel()
	gate, reached := make(chan struct{}), make(chan struct{}, 10)
	path := faultPath(t)
	s := openFault(t, path, aroundCommits(func(commit func() error) error {
		reached <- struct{}{}
		<-gate
		return commit()
	}))
	first := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := s.Create(ctx, completed("first", ""))
		first <- err
	}()
	<-reached
	queued := make(chan error)
	go func() {
		_, err := s.Create(ctx, completed("queued", ""))
		queued <- err
	}()
	cancel()
	require.ErrorIs(t, <-queued, context.Canceled)
	close(gate)
	require.NoError(t, <-first, "it was being written: its true outcome is told")
	_, err := s.Get(t.Context(), faultKey("queued"))
	require.ErrorIs(t, err, ErrNotFound)
	_, err = s.Create(ctx, completed("late", ""))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// TestMutatedSlices changes what was given to the store and what it has given
// out: neither may reach the file, the cache, or another caller.
func TestMutatedSlices(t *testing.T) {
	t.Parallel()
	for _, cacheBytes := range []int64{-1, 0} {
		s := openFault(t, faultPath(t), BoltConfig{CacheBytes: cacheBytes})
		given := []byte("value")
		created, err := s.Create(t.Context(), faultRecord("k", Completed, given, ""))
		require.NoError(t, err)
		copy(given, "XXXXX")
		if len(created.Value) > 0 {
			copy(created.Value, "YYYYY")
		}
		for range 3 { // from the file, from the cache, and after the last caller's change
			rec, err := s.Get(t.Context(), faultKey("k"))
			require.NoError(t, err)
			require.Equal(t, "value", string(rec.Value))
			copy(rec.Value, "ZZZZZ")
			for rec, err := range s.Scan(t.Context(), Query{}) {
				require.NoError(t, err)
				require.Equal(t, "value", string(rec.Value))
				copy(rec.Value, "SSSSS")
			}
			conflict, err := s.Create(t.Context(), completed("k", "other"))
			require.ErrorIs(t, err, ErrConflict)
			require.Equal(t, "value", string(conflict.Value))
			copy(conflict.Value, "CCCCC")
			conflict, err = s.Swap(t.Context(), 999, completed("k", "other"))
			require.ErrorIs(t, err, ErrConflict)
			require.Equal(t, "value", string(conflict.Value))
			copy(conflict.Value, "CCCCC")
		}
		secret := s.Secret()
		clear(secret)
		require.NotEqual(t, secret, s.Secret())
	}
}

// TestGivenSliceDuringWrite changes the given slice as soon as Create has
// returned, while other writes are under way; the race detector watches.
func TestGivenSliceDuringWrite(t *testing.T) {
	t.Parallel()
	s := openFault(t, faultPath(t), BoltConfig{})
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			value := make([]byte, 100)
			for i := range 20 {
				id := fmt.Sprintf("%d-%d", caller, i)
				copy(value, id)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				_, err := s.Create(ctx, faultRecord(id, Completed, value, ""))
				cancel()
				clear(value)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Create: %v", err)
				}
				rec, getErr := s.Get(t.Context(), faultKey(id))
				if err == nil && (getErr != nil || string(rec.Value[:len(id)]) != id) {
					t.Errorf("Get(%s) = %q, %v", id, rec.Value, getErr)
				}
				if err != nil && !errors.Is(getErr, ErrNotFound) {
					t.Errorf("Get(%s) after an ended context = %v", id, getErr)
				}
			}
		})
	}
	callers.Wait()
}
