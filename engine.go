package idem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
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
	// commit makes a batch durable before it returns nil. On errNoSpace nothing
	// was written and the engine goes on; on any other error the outcome is
	// unknown and the engine must not be used any more. Only one goroutine commits.
	commit(b *batch) error
	// removeExpired removes those of the records that check finds expired, beside
	// the commits, and returns how many. Keys that it cannot remove so are
	// returned too: they need a commit.
	removeExpired(keys []Key, check func(*Record) bool) (removed []Key, rest []Key, err error)
	// view calls fn with a read transaction of a durable state of the file. Of
	// records it may show old ones.
	view(fn func(tx *bolt.Tx) error) error
	// snapshot calls fn with a read transaction of the file, and with what lies
	// over it at that moment, in key order. Of that, parts may be in the file
	// already, not yet in its index.
	snapshot(fn func(tx *bolt.Tx, over []overlaid) error) error
	// totals are the number of records and the bytes they take.
	totals() (records, bytes int64)
	// used is the number of bytes in use in the file.
	used() int64
	// close makes b durable if it is not nil, and releases the file.
	close(b *batch) error
}

// errNoSpace is a commit that failed for want of space, with nothing written.
var errNoSpace = errors.New("no space")

// errRefused is a commit that bbolt has refused to make, with nothing written.
var errRefused = errors.New("refused")

// errOutcomeUnknown is a commit of which nobody knows whether it is on disk. It
// also ends reads that would have seen it.
var errOutcomeUnknown = errors.New("outcome unknown")

// batch is one unit of durability.
type batch struct {
	changes []change
	user    []userWrite // which commit together with the direct changes
	state   storeState
	ledger  ledgerBatch
}

// change replaces or, with a nil enc, removes one record.
type change struct {
	key     []byte
	enc     []byte
	version uint64 // of enc, or of the removal
	oldSize int    // of the record before it; 0 if there was none
	fresh   bool   // no successor of that record: its notes go with it
	damaged bool   // that record cannot be read
	direct  bool   // it commits in one transaction of the file with other writes
}

// recordHead is what an engine needs to know of an encoded record.
type recordHead struct {
	version uint64
	expires int64
}

// headOf reads it. Of a record that is too short to have one it is zero.
func headOf(enc []byte) recordHead {
	if len(enc) < recordHeaderSize {
		return recordHead{}
	}
	return recordHead{version: binary.BigEndian.Uint64(enc[8:]), expires: int64(binary.BigEndian.Uint64(enc[16:]))}
}

// storeState is kept with every commit.
type storeState struct {
	version     uint64    // highest ever given
	clock       time.Time // highest ever seen
	servedUntil time.Time // when a service was last known to be up; zero if never
	records     int64     // in the bbolt file
	bytes       int64     // of these, encoded
	merged      uint64    // generation of the journal that the bbolt file has all of
	downtimes   []span    // see storeClock
}

func (s storeState) encode() []byte {
	var b []byte
	for _, v := range []int64{int64(s.version), toMicros(s.clock), toMicros(s.servedUntil), s.records, s.bytes, int64(s.merged)} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	for _, d := range s.downtimes {
		b = binary.BigEndian.AppendUint64(b, uint64(toMicros(d.from)))
		b = binary.BigEndian.AppendUint64(b, uint64(toMicros(d.to)))
	}
	return b
}

func decodeStoreState(b []byte) (storeState, error) {
	const fixed, each = 6 * 8, 2 * 8
	if withoutMerged := fixed - 8; len(b) >= withoutMerged && (len(b)-withoutMerged)%each == 0 {
		// Of a build that had no journal.
		b = slices.Insert(slices.Clone(b), withoutMerged, make([]byte, 8)...)
	}
	if len(b) < fixed || (len(b)-fixed)%each != 0 {
		return storeState{}, fmt.Errorf("%w: the store's state has %d bytes", ErrCorrupt, len(b))
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	s := storeState{
		version: uint64(at(0)), clock: fromMicros(at(1)), servedUntil: fromMicros(at(2)), records: at(3), bytes: at(4),
		merged: uint64(at(5)),
	}
	for i := 6; 8*i < len(b); i += 2 {
		s.downtimes = append(s.downtimes, span{fromMicros(at(i)), fromMicros(at(i + 1))})
	}
	return s, nil
}
