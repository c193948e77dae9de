package idem

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"github.com/idembolt/idem/internal/journal"
)

const (
	// directBytes is the size from which a record is committed to the bbolt file
	// at once: writing it twice would cost more than the sync it saves.
	directBytes = 64 << 10
	// journalAfter is how many commits a holder makes before it begins a journal:
	// one that writes only a little should not have to fill two segments first.
	journalAfter = 32
)

// journalEngine makes batches durable in a journal beside the bbolt file and
// merges them into it in the background, a segment at a time. Reads look at the
// newest records in memory first.
type journalEngine struct {
	file   *boltEngine
	path   string
	config journal.Config
	after  int // commits that are still made without the journal

	log    *journal.Journal // nil until it is begun; only the committing goroutine looks
	failed error            // of an append; likewise
	begun  atomic.Bool      // for everybody: there is a log

	mu     sync.RWMutex
	active *overlay
	frozen *overlay // being merged, or nil

	merge          *mergeRun    // the last one started, or nil
	filled         atomic.Int64 // bytes of the segment that is written
	records, bytes atomic.Int64

	// expiring are keys whose record is removed from the file beside the commits,
	// true if that is done: a batch that was planned before may still take such a
	// record into account. Guarded by mu.
	expiring map[string]bool
}

func newJournalEngine(file *boltEngine, path string, c journal.Config, after int) *journalEngine {
	e := &journalEngine{file: file, path: path, config: c, after: after, active: newOverlay(), expiring: make(map[string]bool)}
	e.records.Store(file.records.Load())
	e.bytes.Store(file.bytes.Load())
	return e
}

// used counts what the records in the journal will take when they are merged.
func (e *journalEngine) used() int64 {
	return e.file.used() + e.bytes.Load() - e.file.bytes.Load()
}

func (e *journalEngine) view(fn func(*bolt.Tx) error) error { return e.file.view(fn) }

func (e *journalEngine) totals() (records, bytes int64) { return e.records.Load(), e.bytes.Load() }

// begin makes the journal when it is time to, and reports whether there is one.
// If it cannot be made the file does, and after as many commits it is tried
// again.
func (e *journalEngine) begin() bool {
	if e.after > 0 {
		e.after--
		return false
	}
	log, err := journal.Create(e.path, e.config, e.file.mergedGeneration())
	if err == nil {
		if err = syncDir(filepath.Dir(e.path)); err != nil {
			_, _ = log.Close(), os.Remove(e.path) // it is empty
		}
	}
	if err != nil {
		e.after = journalAfter
		return false
	}
	e.log = log
	e.begun.Store(true)
	return true
}

// close merges everything, so that what is left is one bbolt file. If it cannot,
// or must not because the outcome of a commit is unknown, the journal stays, and
// the next open recovers from it.
func (e *journalEngine) close(b *batch) error {
	if e.log == nil {
		return e.file.close(b)
	}
	usable := b != nil && e.failed == nil
	var err error
	if e.merge != nil {
		if usable {
			if err = e.merge.wait(); errors.Is(err, errNoSpace) {
				err = e.merge.wait() // what it ran into may be over: this is told after another try
			}
		}
		e.merge.end()
	}
	if usable && err == nil {
		err = e.mergeAll(e.log.Generation())
	}
	err = errors.Join(err, e.log.Close())
	if !usable || err != nil {
		return errors.Join(err, e.file.close(nil))
	}
	return errors.Join(removeJournal(e.path), e.file.close(b))
}

// removeJournal removes a journal whose batches are all in the file.
func removeJournal(path string) error {
	return errors.Join(os.Remove(path), syncDir(filepath.Dir(path)))
}
