package idem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// Bucket and key names of the file. Names that begin with "idem." are reserved.
var (
	bucketMeta    = []byte("idem.meta")
	bucketRecords = []byte("idem.records")
	bucketExpiry  = []byte("idem.expiry")
	bucketNotes   = []byte("idem.notes")
	bucketHistory = []byte("idem.history")

	metaFormat  = []byte("format")
	metaID      = []byte("id")
	metaSecret  = []byte("secret")
	metaCreated = []byte("created")
	metaState   = []byte("state")
)

// indexFill is how full pages of the expiry index are made: entries arrive nearly
// in order.
const indexFill = 0.9

// boltEngine commits every batch in one synced bbolt transaction.
type boltEngine struct {
	db   *bolt.DB
	file *os.File // the same file; closed by db

	// durable is the id of the newest transaction known to be on disk. bbolt
	// shows a new meta page to readers before it has synced it; view does not.
	durable atomic.Int64
	writing sync.Mutex
	failed  error // of the commit that ended the engine's use; guarded by writing
	stale   bool  // the freelist on disk is out of date: commits have left it out

	reserved int64 // up to where in the file disk blocks have been set aside

	state          storeState // of the last commit; guarded by writing
	records, bytes atomic.Int64
	version        atomic.Uint64 // highest in the file
}

// newBoltEngine returns the engine of an open file whose newest transaction is
// on disk.
func newBoltEngine(db *bolt.DB, file *os.File, id int64, state storeState) *boltEngine {
	e := &boltEngine{db: db, file: file, state: state}
	e.durable.Store(id)
	e.records.Store(state.records)
	e.bytes.Store(state.bytes)
	e.version.Store(state.version)
	return e
}

// mergedGeneration is the generation of the journal that the file has all of.
func (e *boltEngine) mergedGeneration() uint64 {
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.state.merged
}

// view runs fn in a read transaction of a durable state.
func (e *boltEngine) view(fn func(*bolt.Tx) error) error {
	errNotYet := errors.New("not yet durable")
	for {
		err := guarded(func() error {
			return e.db.View(func(tx *bolt.Tx) error {
				if int64(tx.ID()) > e.durable.Load() {
					return errNotYet
				}
				return fn(tx)
			})
		})
		if err != errNotYet { //nolint:errorlint // identity is meant: fn cannot return it
			return err
		}
		e.writing.Lock() // the commit that fn would have seen has ended after this
		failed := e.failed
		e.writing.Unlock()
		if failed != nil {
			return failed
		}
	}
}

func (e *boltEngine) get(key []byte, fn func([]byte) error) error {
	return e.view(func(tx *bolt.Tx) error { return fn(tx.Bucket(bucketRecords).Get(key)) })
}

func (e *boltEngine) scan(prefix, after []byte, fn func(key, enc []byte) bool) error {
	return e.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketRecords).Cursor()
		start := prefix
		if bytes.Compare(after, prefix) > 0 {
			start = after
		}
		for k, v := c.Seek(start); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
			if len(after) > 0 && bytes.Equal(k, after) {
				continue
			}
			if !fn(k, v) {
				return nil
			}
		}
		return nil
	})
}

func (e *boltEngine) annotate(keys []string, fn func(i int, enc []byte) error) error {
	return e.view(func(tx *bolt.Tx) error {
		notes := tx.Bucket(bucketNotes)
		for i, key := range keys {
			if err := fn(i, notes.Get([]byte(key))); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *boltEngine) history(fn func(hour int64, enc []byte) error) error {
	return e.view(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketHistory).ForEach(func(k, v []byte) error {
			if len(k) != 8 {
				return fmt.Errorf("%w: an hour of the history has a key of %d bytes", ErrCorrupt, len(k))
			}
			return fn(int64(binary.BigEndian.Uint64(k)), v)
		})
	})
}

func (e *boltEngine) due(stretch span, after []byte, limit int) ([][]byte, error) {
	first := expiryEntry(toMicros(stretch.from)+1, nil)
	if after != nil {
		first = append(after, 0) // the smallest key above it
	}
	var entries [][]byte
	err := e.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketExpiry).Cursor()
		for entry, _ := c.Seek(first); entry != nil && len(entries) < limit; entry, _ = c.Next() {
			if len(entry) < 8 {
				return fmt.Errorf("%w: an entry of the expiry index has %d bytes", ErrCorrupt, len(entry))
			}
			if int64(binary.BigEndian.Uint64(entry)) > toMicros(stretch.to) {
				return nil
			}
			entries = append(entries, bytes.Clone(entry))
		}
		return nil
	})
	return entries, err
}

func expiryEntry(expires int64, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(key)), uint64(expires)), key...)
}

func (e *boltEngine) commit(b *batch) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.update(false, func(tx *bolt.Tx, state *storeState) error {
		if err := e.reserve(tx, b); err != nil {
			return err
		}
		return b.apply(tx, state)
	})
}

// update makes one synced transaction of fn, which brings the file's state up to
// date; it is stored with it. The caller holds writing. Errors are those of
// commit.
//
// harmless says that readers need not wait for the sync: what they see is durable
// in the journal, or lacks what has expired.
func (e *boltEngine) update(harmless bool, fn func(tx *bolt.Tx, state *storeState) error) error {
	if e.failed != nil {
		return e.failed
	}
	before := e.durable.Load()
	var id int64
	state := e.state
	err := guarded(func() error {
		return e.db.Update(func(tx *bolt.Tx) error {
			id = int64(tx.ID())
			if err := fn(tx, &state); err != nil {
				return err
			}
			if harmless {
				e.durable.Store(id)
			}
			return tx.Bucket(bucketMeta).Put(metaState, state.encode())
		})
	})
	if err == nil {
		e.durable.Store(id)
		e.state = state
		e.records.Store(state.records)
		e.bytes.Store(state.bytes)
		e.version.Store(state.version)
		e.stale = e.db.NoFreelistSync
		return nil
	}
	if errors.Is(err, errNothingToDo) || errors.Is(err, errRefused) {
		return err
	}
	if isNoSpace(err) && !errors.Is(err, ErrCorrupt) && e.visible() == before {
		e.durable.Store(before) // the next transaction has the same id
		return fmt.Errorf("%w: %w", errNoSpace, err)
	}
	e.failed = fmt.Errorf("%w: %w", errOutcomeUnknown, err)
	return e.failed
}

// visible is the id of the newest transaction a reader would get now, durable or
// not; -1 if that cannot be told.
func (e *boltEngine) visible() int64 {
	id := int64(-1)
	_ = guarded(func() error {
		return e.db.View(func(tx *bolt.Tx) error {
			id = int64(tx.ID())
			return nil
		})
	})
	return id
}

// apply makes the changes in a transaction, each only if it is newer than what
// the file has, and brings the file's state up to date.
func (b *batch) apply(tx *bolt.Tx, state *storeState) error {
	for _, c := range b.changes {
		if err := c.apply(tx, state); err != nil {
			return err
		}
	}
	for _, w := range b.user {
		if err := w.apply(tx); err != nil {
			return err
		}
	}
	state.follow(b.state)
	return b.ledger.apply(tx)
}

// follow takes over a newer state, except for what only the file knows of itself.
func (s *storeState) follow(newer storeState) {
	if newer.version >= s.version {
		newer.records, newer.bytes, newer.merged = s.records, s.bytes, s.merged
		*s = newer
	}
}

// apply makes the change and keeps the expiry index.
func (c *change) apply(tx *bolt.Tx, file *storeState) error {
	applied, err := c.applyRecord(tx, file)
	if err != nil || !applied || c.enc == nil {
		return err
	}
	index := tx.Bucket(bucketExpiry)
	index.FillPercent = indexFill
	return index.Put(expiryEntry(headOf(c.enc).expires, c.key), nil)
}

// applyRecord is apply without the new record's entry in the index. It reports
// false if the file has a newer record.
func (c *change) applyRecord(tx *bolt.Tx, file *storeState) (applied bool, err error) {
	records, index := tx.Bucket(bucketRecords), tx.Bucket(bucketExpiry)
	if old := records.Get(c.key); old != nil {
		was := headOf(old)
		if was.version >= c.version && !c.damaged && was.version <= file.version {
			return false, nil // what has a version that was never given is damaged
		}
		file.records--
		file.bytes -= int64(len(old))
		switch {
		case c.damaged:
			err = deleteEntries(index, c.key)
		case c.enc == nil || was.expires != headOf(c.enc).expires:
			err = index.Delete(expiryEntry(was.expires, c.key))
		}
		if c.fresh {
			err = errors.Join(err, tx.Bucket(bucketNotes).Delete(c.key))
		}
	}
	if c.enc == nil {
		return true, errors.Join(err, records.Delete(c.key))
	}
	file.records++
	file.bytes += int64(len(c.enc))
	return true, errors.Join(err, records.Put(c.key, c.enc))
}

// removeExpired leaves everything to commits, which write the same file.
func (e *boltEngine) removeExpired(keys []Key, _ func(*Record) bool) ([]Key, []Key, error) {
	return nil, keys, nil
}

// removeDirect removes records that check finds expired in a transaction of its
// own, except for those of which over says that something lies over them; over is
// told whether the file has nothing to remove.
func (e *boltEngine) removeDirect(keys []Key, check func(*Record) bool, over func(key []byte, gone bool) bool) (removed, rest []Key, bytes int64, err error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	err = e.update(true, func(tx *bolt.Tx, state *storeState) error {
		for _, key := range keys {
			text := []byte(key.String())
			enc := tx.Bucket(bucketRecords).Get(text)
			rec, err := decodeRecord(text, enc, false)
			gone := err != nil || !check(&rec) // or changed since it was looked up
			switch {
			case over(text, gone):
				rest = append(rest, key)
				continue
			case gone:
				continue
			}
			removed = append(removed, key)
			bytes += int64(len(enc))
			removal := change{key: text, version: rec.Version + 1, fresh: true}
			if err := removal.apply(tx, state); err != nil {
				return err
			}
		}
		if len(removed) == 0 {
			return errNothingToDo
		}
		return nil
	})
	if errors.Is(err, errNothingToDo) {
		err = nil
	}
	return removed, rest, bytes, err
}

// errNothingToDo ends a transaction without a commit.
var errNothingToDo = errors.New("nothing to do")

func (e *boltEngine) snapshot(fn func(*bolt.Tx, []overlaid) error) error {
	return guarded(func() error { return e.db.View(func(tx *bolt.Tx) error { return fn(tx, nil) }) })
}

func (e *boltEngine) totals() (records, bytes int64) { return e.records.Load(), e.bytes.Load() }

func (e *boltEngine) used() int64 {
	var size int64
	err := e.view(func(tx *bolt.Tx) error {
		stats := e.db.Stats()
		size = tx.Size() - int64(stats.FreePageN+stats.PendingPageN)*int64(e.db.Info().PageSize)
		return nil
	})
	if err != nil {
		return 0
	}
	return size
}

// close writes the freelist, which the commits of a service leave out because
// it would double their size, so that the next open need not scan the file for
// free pages.
func (e *boltEngine) close(b *batch) error {
	var err error
	if b != nil && (e.stale || !b.ledger.empty()) {
		e.db.NoFreelistSync = false
		err = e.commit(b)
	}
	return errors.Join(err, guarded(e.db.Close))
}
