package idem

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/stretchr/testify/require"
)

type pwrite = func(b []byte, off int64) (int, error)

// hookWrites puts wrap around the function with which bbolt writes to its file.
// The field is not exported, and Options.OpenFile hands out no interface.
func hookWrites(t *testing.T, db *bolt.DB, wrap func(next pwrite, b []byte, off int64) (int, error)) {
	t.Helper()
	field := reflect.ValueOf(db).Elem().FieldByName("ops").FieldByName("writeAt")
	require.True(t, field.IsValid(), "this version of bbolt writes in another way")
	slot := (*pwrite)(unsafe.Pointer(field.UnsafeAddr()))
	next := *slot
	*slot = func(b []byte, off int64) (int, error) { return wrap(next, b, off) }
}

// syncFault makes the sync after the n-th meta page fail and counts writes. The
// meta page itself is written, so that readers of the map could see it.
type syncFault struct {
	fired  atomic.Bool
	over   atomic.Bool
	writes atomic.Int64 // since it fired
	repair func()       // gives the store its file back
}

func failMetaSync(t *testing.T, s *BoltStore, n int) *syncFault {
	t.Helper()
	fd := int(s.handle.Fd())
	saved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) // keeps the file, and its lock
	require.NoError(t, err)
	read, write, err := os.Pipe() // fdatasync of a pipe is EINVAL
	require.NoError(t, err)
	f := &syncFault{}
	page := int64(os.Getpagesize())
	hookWrites(t, s.db, func(next pwrite, b []byte, off int64) (int, error) {
		if f.fired.Load() {
			f.writes.Add(1)
		}
		done, err := next(b, off)
		if off < 2*page && !f.over.Load() {
			if n--; n == 0 {
				if err := unix.Dup3(int(write.Fd()), fd, unix.O_CLOEXEC); err != nil {
					t.Errorf("dup3: %v", err)
				}
				f.fired.Store(true)
			}
		}
		return done, err
	})
	f.repair = func() {
		f.over.Store(true)
		require.NoError(t, unix.Dup3(saved, fd, unix.O_CLOEXEC))
		require.NoError(t, unix.Close(saved))
		require.NoError(t, read.Close())
		require.NoError(t, write.Close())
	}
	return f
}

// TestMetaSyncFails injects a failed sync of the meta page of a Create: bbolt
// reports an error, but every later reader of the map sees the write. The store
// must call the outcome unknown: poisoned, not cached, not shown, no further
// write, and readers that were at work must neither see it nor wait for ever.
func TestMetaSyncFails(t *testing.T) {
	t.Parallel()
	for range 20 { // readers race with the commit
		path := faultFile(t, 1, 100)
		s := openFault(t, path, BoltConfig{})
		_, err := s.Get(t.Context(), faultKey("k0")) // now cached
		require.NoError(t, err)

		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for {
					_, err := s.Get(t.Context(), faultKey("new"))
					if err == nil {
						t.Error("a reader saw a record that may not be on disk")
					}
					if !isAny(err, ErrNotFound) {
						if !isAny(err, ErrPoisoned) {
							t.Errorf("reader: %v", err)
						}
						return
					}
				}
			})
		}
		fault := failMetaSync(t, s, 1)
		rec, err := s.Create(t.Context(), completed("new", "v"))
		require.True(t, fault.fired.Load())
		require.ErrorIs(t, err, ErrPoisoned)
		require.ErrorIs(t, err, unix.EINVAL, "the cause is named")
		require.Equal(t, Record{}, rec)
		readers.Wait()

		_, cached := s.cache.get(faultKey("new"))
		require.False(t, cached)
		requirePoisoned(t, s, faultKey("k0"))
		require.Zero(t, fault.writes.Load(), "the store wrote after a failed sync")
		fault.repair()
		require.NoError(t, s.Close())
		require.Zero(t, fault.writes.Load(), "Close wrote after a failed sync")

		s = openFault(t, path, BoltConfig{LockTimeout: -1})
		rec, err = s.Get(t.Context(), faultKey("new"))
		require.NoError(t, err, "here the meta page did reach the file")
		require.Equal(t, "v", string(rec.Value))
		require.NoError(t, s.Close())
		requireSound(t, path)
	}
}

// TestMetaSyncFailsThenRestart injects a failed sync of the meta page of each
// commit of Do, and then both ends of the story: the page had reached the disk,
// or power was lost and it had not. After the restart the effect must not happen
// a second time, and what was acknowledged before must be there.
func TestMetaSyncFailsThenRestart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		commit    int // of Do: 1 is the claim, 2 the end
		powerLost bool
	}{
		{"claim, page on disk", 1, false},
		{"claim, page lost", 1, true},
		{"end, page on disk", 2, false},
		{"end, page lost", 2, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := faultFile(t, 3, 100)
			s := openFault(t, path, BoltConfig{})
			g, err := New(s)
			require.NoError(t, err)
			fault := failMetaSync(t, s, tt.commit)
			durable := make(chan []byte, 2) // meta pages before each commit's own
			keepMeta(t, s.db, durable)

			effects := 0
			effect := func(context.Context, *Attempt) (string, error) { effects++; return "done", nil }
			res, err := Do(t.Context(), g, faultKey("new"), nil, effect)
			require.True(t, fault.fired.Load())
			require.ErrorIs(t, err, ErrPoisoned)
			require.Equal(t, tt.commit-1, effects, "an effect needs a durable claim")
			if tt.commit == 2 {
				require.ErrorIs(t, err, ErrNotRecorded)
				require.Equal(t, "done", res.Value)
			}
			fault.repair()
			require.NoError(t, g.Close())
			require.NoError(t, s.Close())
			if tt.powerLost {
				restoreMeta(t, path, durable)
			}

			s = openFault(t, path, BoltConfig{})
			for i := range 3 {
				rec, err := s.Get(t.Context(), faultKey([]string{"k0", "k1", "k2"}[i]))
				require.NoError(t, err)
				require.Equal(t, faultValue(i, 100), string(rec.Value))
			}
			g, err = New(s)
			require.NoError(t, err)
			res, err = Do(t.Context(), g, faultKey("new"), nil, effect)
			switch {
			case tt.commit == 1 && tt.powerLost: // nothing is known of the claim, and nothing happened
				require.NoError(t, err)
				require.False(t, res.Replayed)
			case tt.commit == 2 && !tt.powerLost:
				require.NoError(t, err)
				require.True(t, res.Replayed)
			default:
				require.ErrorIs(t, err, ErrInterrupted)
			}
			require.LessOrEqual(t, effects, 1)
			require.NoError(t, s.Close())
			requireSound(t, path)
		})
	}
}

// keepMeta sends both meta pages as they are before each write of one.
func keepMeta(t *testing.T, db *bolt.DB, pages chan<- []byte) {
	t.Helper()
	path := db.Path()
	hookWrites(t, db, func(next pwrite, b []byte, off int64) (int, error) {
		if off < int64(2*os.Getpagesize()) {
			file, err := os.ReadFile(path)
			if err != nil {
				t.Errorf("read: %v", err)
			}
			pages <- file[:2*os.Getpagesize()]
		}
		return next(b, off)
	})
}

// restoreMeta puts back the meta pages from before the last write of one.
func restoreMeta(t *testing.T, path string, pages chan []byte) {
	t.Helper()
	var last []byte
	for len(pages) > 0 {
		last = <-pages
	}
	require.NotEmpty(t, last)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.False(t, bytes.Equal(last, file[:len(last)]))
	copy(file, last)
	require.NoError(t, os.WriteFile(path, file, 0o600))
}
