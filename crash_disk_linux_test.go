package idem

import (
	"encoding/binary"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// diskEvent is one thing that happened to the bbolt file or its journal.
type diskEvent struct {
	what diskWhat
	off  int64
	data []byte
	size int64 // of the bbolt file
}

type diskWhat int

const (
	fileWrite diskWhat = iota
	fileSync
	logMaking  // the journal is written under its temporary name
	logCreated // it has got its name, which the directory may not have yet
	logWrite
	logSync
	logRemoved
)

// diskLog records what a store does to its files, in order. A sync is recorded
// when it is known to have ended.
type diskLog struct {
	t    *testing.T
	path string
	base disk // what was on disk before

	mu       sync.Mutex
	events   []diskEvent
	file     *boltEngine
	unsynced int64 // id of a transaction whose meta page was written; 0 if it is synced
	logThere bool
	made     []byte // of a journal that is being made
}

// recordDisk configures a store so that the log gets its writes. The files must
// not change until it is opened.
func recordDisk(t *testing.T, path string, c BoltConfig) (*diskLog, BoltConfig) {
	t.Helper()
	l := &diskLog{t: t, path: path, base: readDisk(t, path)}
	l.logThere = l.base.log != nil
	c.tap = l.tap
	return l, c
}

func (l *diskLog) tap(file *boltEngine, c *journal.Config) {
	l.file = file
	l.file.db.NoSync = true // what was synced is decided here
	hookWrites(l.t, file.db, func(next pwrite, b []byte, off int64) (int, error) {
		l.fileWrite(b, off)
		return next(b, off)
	})
	c.WriteAt = func(f *os.File, b []byte, off int64) (int, error) {
		what := logWrite
		if !l.there() {
			what = logMaking
		}
		l.add(diskEvent{what: what, off: off, data: b})
		return f.WriteAt(b, off)
	}
	c.Sync = func(*os.File) error {
		if l.there() {
			l.add(diskEvent{what: logSync})
			return nil
		}
		l.add(diskEvent{what: logCreated})
		l.mu.Lock()
		defer l.mu.Unlock()
		l.logThere = true
		return nil
	}
}

func (l *diskLog) fileWrite(b []byte, off int64) {
	info, err := l.file.file.Stat()
	if err != nil {
		l.t.Errorf("stat: %v", err)
		return
	}
	meta := off < int64(2*os.Getpagesize())
	if meta { // bbolt has just synced the data pages
		l.add(diskEvent{what: fileSync})
	}
	l.add(diskEvent{what: fileWrite, off: off, data: b, size: info.Size()})
	if meta {
		l.mu.Lock()
		l.unsynced = int64(binary.NativeEndian.Uint64(b[64:])) // the transaction's id
		l.mu.Unlock()
	}
}

func (l *diskLog) add(e diskEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	e.data = append([]byte(nil), e.data...)
	l.events = append(l.events, e)
}

// now is the number of events so far: a point in time.
func (l *diskLog) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	return len(l.events)
}

// there reports whether there is a journal.
func (l *diskLog) there() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	return l.logThere
}

// settle adds what is known to have happened since the last event.
func (l *diskLog) settle() {
	if l.unsynced != 0 && l.file.durable.Load() >= l.unsynced {
		l.events, l.unsynced = append(l.events, diskEvent{what: fileSync}), 0
	}
	if l.logThere && l.named() {
		if _, err := os.Lstat(l.path + journal.Suffix); err != nil {
			l.events, l.logThere = append(l.events, diskEvent{what: logRemoved}), false
		}
	}
}

// named reports whether a new journal has had the time to get its name: the
// events after its creation come after that.
func (l *diskLog) named() bool {
	return len(l.events) == 0 || l.events[len(l.events)-1].what != logCreated
}

// disk is the content of both files; log is nil if there is none.
type disk struct{ file, log []byte }

func readDisk(t *testing.T, path string) disk {
	t.Helper()
	var d disk
	var err error
	d.file, err = os.ReadFile(path)
	require.NoError(t, err)
	d.log, err = os.ReadFile(path + journal.Suffix)
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
		d.log = nil
	}
	return d
}

func (d disk) write(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, d.file, 0o600))
	if d.log == nil {
		require.NoError(t, removeAny(path+journal.Suffix))
		return
	}
	require.NoError(t, os.WriteFile(path+journal.Suffix, d.log, 0o600))
}

func removeAny(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// crash is a moment at which the power fails: what is on disk for sure, and what
// may be there, whole or in parts, or not.
type crash struct {
	at      int // event that has begun; all before it have ended
	durable disk
	pending struct {
		file, log []diskEvent
		created   []byte // the journal, if its name may be lost
		removed   bool   // the journal's removal may be lost
	}
}

// crashes calls fn for every moment of the recording.
func (l *diskLog) crashes(fn func(*crash)) {
	c := &crash{durable: disk{append([]byte(nil), l.base.file...), append([]byte(nil), l.base.log...)}}
	if l.base.log == nil {
		c.durable.log = nil
	}
	for i, e := range l.events {
		c.at = i
		c.begin(e, &l.made)
		fn(c)
	}
	c.at = len(l.events)
	fn(c)
}

// begin brings the disk to the moment at which the event has begun.
func (c *crash) begin(e diskEvent, made *[]byte) {
	if e.what != logCreated && c.pending.created != nil {
		c.durable.log, c.pending.created = c.pending.created, nil
	}
	if c.pending.removed {
		c.durable.log, c.pending.removed = nil, false
	}
	switch e.what {
	case fileWrite:
		c.durable.file = grown(c.durable.file, e.size)
		c.pending.file = append(c.pending.file, e)
	case fileSync:
		c.durable.file = whole(c.durable.file, c.pending.file)
		c.pending.file = nil
	case logMaking:
		*made = whole(grown(*made, e.off+int64(len(e.data))), []diskEvent{e})
	case logCreated:
		c.pending.created, *made = *made, nil
	case logWrite:
		c.pending.log = append(c.pending.log, e)
	case logSync:
		c.durable.log = whole(c.durable.log, c.pending.log)
		c.pending.log = nil
	case logRemoved:
		c.pending.removed = true
	}
}

func grown(b []byte, size int64) []byte {
	return append(b, make([]byte, max(0, size-int64(len(b))))...)
}

func whole(b []byte, writes []diskEvent) []byte {
	for _, w := range writes {
		copy(b[w.off:], w.data)
	}
	return b
}

// image is one of the states that the disk may be in after the crash.
func (c *crash) image(random *rand.Rand) disk {
	d := disk{file: append([]byte(nil), c.durable.file...)}
	tear(d.file, c.pending.file, random)
	switch {
	case c.pending.created != nil && random.IntN(2) == 0:
		d.log = append([]byte(nil), c.pending.created...)
	case c.durable.log != nil && !(c.pending.removed && random.IntN(2) == 0):
		d.log = append([]byte(nil), c.durable.log...)
		tear(d.log, c.pending.log, random)
	}
	return d
}
