package idem

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// diskCalls lets one of the calls on the files of a store fail.
type diskCalls struct {
	kind  string // of calls that count
	nth   int64  // of them to fail
	calls atomic.Int64
	fired atomic.Bool
}

func (d *diskCalls) fail(kind string) error {
	if kind != d.kind || d.calls.Add(1) != d.nth {
		return nil
	}
	d.fired.Store(true)
	return errInjected
}

// config forces the journal and a merge every few dozen writes.
func (d *diskCalls) config(t *testing.T) BoltConfig {
	return BoltConfig{LockTimeout: -1, CacheBytes: -1, SegmentBytes: minSegmentBytes, journalAfter: -1,
		tap: func(file *boltEngine, c *journal.Config) {
			file.db.NoSync = d.kind != "meta sync" // for speed
			hookWrites(t, file.db, func(next pwrite, b []byte, off int64) (int, error) {
				if err := d.fail("file write"); err != nil {
					n, _ := next(b[:len(b)/2], off)
					return n, err
				}
				return next(b, off)
			})
			c.WriteAt = func(f *os.File, b []byte, off int64) (int, error) {
				if err := d.fail("journal write"); err != nil {
					n, _ := f.WriteAt(b[:len(b)/2], off)
					return n, err
				}
				return f.WriteAt(b, off)
			}
			c.Sync = func(*os.File) error { return d.fail("journal sync") }
		}}
}

// TestNthDiskCallFails lets each write and sync of a script with several merges
// fail in turn, until none does. Whoever is told of it is told ErrPoisoned with
// the cause, somebody is told, and after opening again everything acknowledged is
// there and the file is sound.
func TestNthDiskCallFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind     string
		step     int64 // how many calls are passed over
		min      int64 // calls that the script makes at least
		harmless int64 // first calls whose failure is made up for
	}{
		{"journal write", 7, 300, 2}, // without a journal the file is used
		{"journal sync", 7, 300, 1},
		{"file write", 5, 60, 0},
		{"meta sync", 1, 6, 0},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			n := int64(1)
			for ; failNthCall(t, tt.kind, n, n <= tt.harmless); n++ {
				if n > tt.harmless+5 {
					n += tt.step - 1
				}
			}
			require.Greater(t, n, tt.min)
		})
	}
}

func failNthCall(t *testing.T, kind string, n int64, harmless bool) (fired bool) {
	d := &diskCalls{kind: kind, nth: n}
	path := filepath.Join(crashDir(t), "idem.db")
	s := openFault(t, path, d.config(t))
	repair := func() {}
	if kind == "meta sync" {
		fault := failMetaSync(t, s, int(n))
		repair = func() {
			fault.repair()
			d.fired.Store(fault.fired.Load())
		}
	}
	script := newDiskScript(s)
	err := script.run(t, 400)
	if err != nil {
		require.ErrorIs(t, err, ErrPoisoned)
		requirePoisoned(t, s, faultKey("k0"))
	}
	repair()
	closeErr := s.Close()
	fired = d.fired.Load()
	told := err != nil || closeErr != nil
	require.Equal(t, fired && !harmless, told, "%s %d", kind, n)
	if err != nil && kind != "meta sync" {
		require.ErrorIs(t, err, errInjected)
	}
	s = openFault(t, path, BoltConfig{LockTimeout: -1})
	script.verify(t, s)
	require.NoError(t, s.Close())
	requireSound(t, path)
	names, err := filepath.Glob(path + "?*")
	require.NoError(t, err)
	require.Empty(t, names)
	return fired
}

// diskScript writes and remembers what was acknowledged.
type diskScript struct {
	store *BoltStore
	acked map[string]Record
	open  *Record // what the write that failed would have left
}

func newDiskScript(s *BoltStore) *diskScript {
	return &diskScript{store: s, acked: map[string]Record{}}
}

// run makes writes of all kinds until one fails.
func (d *diskScript) run(t *testing.T, steps int) error {
	for i := range steps {
		id := fmt.Sprintf("k%d", i%37)
		var err error
		rec := completed(id, faultValue(i, 200+37*(i%40)))
		if i%90 == 50 {
			rec.Value = []byte(faultValue(i, directBytes))
		}
		var stored Record
		switch old := d.acked[id]; {
		case old.State != 0 && i%5 == 0:
			rec = Record{Key: rec.Key} // removed
			err = d.store.Delete(t.Context(), old.Key, old.Version)
			stored = rec
		case old.State != 0:
			stored, err = d.store.Swap(t.Context(), old.Version, rec)
		default:
			stored, err = d.store.Create(t.Context(), rec)
		}
		if err != nil {
			d.open = &rec
			return err
		}
		d.acked[id] = stored
	}
	return nil
}

// verify requires what was acknowledged, and of the key of the write that failed
// what was there before or what it would have left.
func (d *diskScript) verify(t *testing.T, s *BoltStore) {
	t.Helper()
	got := contents(t, s)
	for id, rec := range d.acked {
		if d.open != nil && d.open.Key == rec.Key {
			continue
		}
		if rec.State == 0 {
			require.NotContains(t, got, id)
			continue
		}
		require.Equal(t, "completed "+string(rec.Value), got[id], id)
	}
	if d.open == nil {
		return
	}
	possible := []string{""}
	for _, rec := range []Record{d.acked[d.open.Key.ID], *d.open} {
		if rec.State != 0 {
			possible = append(possible, "completed "+string(rec.Value))
		}
	}
	if old := d.acked[d.open.Key.ID]; old.State != 0 && d.open.State != 0 {
		possible = possible[1:] // neither of the two removes it
	}
	require.Contains(t, possible, got[d.open.Key.ID])
}

// TestJournalCannotBeMade injects a directory in its place: the file is used, and
// later the journal is tried again.
func TestJournalCannotBeMade(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	s := openFault(t, path, BoltConfig{SegmentBytes: minSegmentBytes, journalAfter: -1})
	require.NoError(t, os.MkdirAll(filepath.Join(path+journal.Suffix, "in the way"), 0o700))
	script := newDiskScript(s)
	require.NoError(t, script.run(t, journalAfter))
	require.False(t, s.engine.(*journalEngine).begun.Load())
	require.NoError(t, os.RemoveAll(path+journal.Suffix))
	require.NoError(t, script.run(t, journalAfter), "over what is there")
	require.True(t, s.engine.(*journalEngine).begun.Load(), "it is tried again")
	script.verify(t, s)
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// TestJournalCannotBeRemoved injects a directory in its place at the end: Close
// says so, and nothing is lost.
func TestJournalCannotBeRemoved(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	s := openFault(t, path, BoltConfig{SegmentBytes: minSegmentBytes, journalAfter: -1})
	script := newDiskScript(s)
	require.NoError(t, script.run(t, 100))
	require.NoError(t, os.Remove(path+journal.Suffix))
	require.NoError(t, os.MkdirAll(filepath.Join(path+journal.Suffix, "in the way"), 0o700))
	require.ErrorContains(t, s.Close(), journal.Suffix)
	_, err := OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: -1})
	require.Error(t, err, "what lies there may be a journal that cannot be read")
	require.NoError(t, os.RemoveAll(path+journal.Suffix))
	s = openFault(t, path, BoltConfig{LockTimeout: -1})
	script.verify(t, s)
	require.NoError(t, s.Close())
	requireSound(t, path)
}
