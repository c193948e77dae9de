package idem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

// engine is the durable state under a BoltStore and the one way to change it.
// Everything above it (compare-and-swap, expiry, limits, the cache) works on
// encoded records and does not know how they become durable.
type engine interface {
	// get calls fn with the newest durable encoded record of key, or nil. The
	// bytes are valid only during the call.
	get(key []byte, fn func(enc []byte) error) error
	// scan calls fn for records whose key begins with prefix and is greater than
	// after, in key order, until fn returns false. Bytes as for get.
	scan(prefix, after []byte, fn func(key, enc []byte) bool) error
	// annotate calls fn with the stored note of each key in turn, or nil.
	annotate(keys []string, fn func(i int, enc []byte) error) error
	// history calls fn with the counts of each hour, oldest first.
	history(fn func(hour int64, enc []byte) error) error
	// due returns up to limit entries of the expiry index whose time is within
	// the stretch, oldest first, beginning behind the entry after. An entry is 8
	// bytes time and the key. It may be out of date: the record has the last word.
	due(stretch span, after []byte, limit int) ([][]byte, error)
	// commit makes a batch durable, all of it or nothing, before it returns nil.
	// On errNoSpace nothing was written and the engine goes on; on any other
	// error the outcome is unknown and the engine must not be used any more.
	commit(b *batch) error
	// used is the number of bytes in use in the file.
	used() int64
	// close makes b durable if it is not nil, and releases the file.
	close(b *batch) error
}

// errNoSpace is a commit that failed for want of space, with nothing written.
var errNoSpace = errors.New("no space")

// errOutcomeUnknown is a commit of which nobody knows whether it is on disk. It
// also ends reads that would have seen it.
var errOutcomeUnknown = errors.New("outcome unknown")

// batch is one unit of durability.
type batch struct {
	changes []change
	state   storeState
	ledger  ledgerBatch
}

// change replaces or, with a nil enc, removes one record.
type change struct {
	key        []byte
	enc        []byte
	expires    int64 // of enc, in microseconds
	oldExpires int64 // of the record it replaces; 0 if there was none
	fresh      bool  // no successor of that record: its notes go with it
	damaged    bool  // that record cannot be read
}

// storeState is kept with every commit.
type storeState struct {
	version     uint64    // highest ever given
	clock       time.Time // highest ever seen
	servedUntil time.Time // when a service was last known to be up; zero if never
	records     int64
	bytes       int64  // of encoded records
	downtimes   []span // see storeClock
}

func (s storeState) encode() []byte {
	var b []byte
	for _, v := range []int64{int64(s.version), toMicros(s.clock), toMicros(s.servedUntil), s.records, s.bytes} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	for _, d := range s.downtimes {
		b = binary.BigEndian.AppendUint64(b, uint64(toMicros(d.from)))
		b = binary.BigEndian.AppendUint64(b, uint64(toMicros(d.to)))
	}
	return b
}

func decodeStoreState(b []byte) (storeState, error) {
	const fixed, each = 5 * 8, 2 * 8
	if len(b) < fixed || (len(b)-fixed)%each != 0 {
		return storeState{}, fmt.Errorf("%w: the store's state has %d bytes", ErrCorrupt, len(b))
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	s := storeState{
		version: uint64(at(0)), clock: fromMicros(at(1)), servedUntil: fromMicros(at(2)), records: at(3), bytes: at(4),
	}
	for i := 5; 8*i < len(b); i += 2 {
		s.downtimes = append(s.downtimes, span{fromMicros(at(i)), fromMicros(at(i + 1))})
	}
	return s, nil
}

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
	before := e.durable.Load()
	var id int64
	err := guarded(func() error {
		return e.db.Update(func(tx *bolt.Tx) error {
			id = int64(tx.ID())
			if err := e.reserve(tx, b); err != nil {
				return err
			}
			return b.apply(tx)
		})
	})
	if err == nil {
		e.durable.Store(id)
		e.stale = e.db.NoFreelistSync
		return nil
	}
	if isNoSpace(err) && !errors.Is(err, ErrCorrupt) && e.visible() == before {
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

func (b *batch) apply(tx *bolt.Tx) error {
	records, index, notes := tx.Bucket(bucketRecords), tx.Bucket(bucketExpiry), tx.Bucket(bucketNotes)
	index.FillPercent = 0.9 // entries arrive nearly in order
	for _, c := range b.changes {
		var err error
		if c.oldExpires != 0 && (c.enc == nil || c.oldExpires != c.expires) {
			err = index.Delete(expiryEntry(c.oldExpires, c.key))
		}
		if c.damaged {
			err = deleteEntries(index, c.key)
		}
		if (c.oldExpires != 0 || c.damaged) && c.fresh {
			err = errors.Join(err, notes.Delete(c.key))
		}
		if c.enc == nil {
			err = errors.Join(err, records.Delete(c.key))
		} else {
			err = errors.Join(err, records.Put(c.key, c.enc), index.Put(expiryEntry(c.expires, c.key), nil))
		}
		if err != nil {
			return err
		}
	}
	if err := b.ledger.apply(tx); err != nil {
		return err
	}
	return tx.Bucket(bucketMeta).Put(metaState, b.state.encode())
}

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
