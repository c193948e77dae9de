package idem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// errTxRaced ends a DoTx whose key was claimed by somebody else before it could
// commit. Nothing of it was written.
var errTxRaced = errors.New("the key was claimed meanwhile")

// userWrite is one write to a caller's bucket.
type userWrite struct {
	bucket string
	key    []byte // nil: under the bucket's next number
	value  []byte // nil: the key is deleted
}

// userWrites are those that one batch has staged.
type userWrites struct {
	list     []userWrite
	written  map[bucketKey]bool
	appended map[string]bool // buckets
}

// bucketKey names a pair, or with an empty key all of a bucket.
type bucketKey struct{ bucket, key string }

func (u *userWrites) add(writes []userWrite) {
	if u.written == nil {
		u.written, u.appended = make(map[bucketKey]bool), make(map[string]bool)
	}
	u.list = append(u.list, writes...)
	for _, w := range writes {
		u.written[bucketKey{w.bucket, ""}] = true
		u.written[bucketKey{w.bucket, string(w.key)}] = true
		u.appended[w.bucket] = u.appended[w.bucket] || w.key == nil
	}
}

// touch reports whether any of them is within what was read.
func (u *userWrites) touch(r *txRead) bool {
	switch {
	case !u.written[bucketKey{r.bucket, ""}]:
		return false
	case u.appended[r.bucket]:
		return true // where in the bucket is not known yet
	case r.to != nil && bytes.Equal(r.from, r.to):
		return u.written[bucketKey{r.bucket, string(r.from)}]
	}
	return slices.ContainsFunc(u.list, func(w userWrite) bool { return w.bucket == r.bucket && r.holds(w.key) })
}

// apply makes the write. Buckets are made by the first one.
func (w *userWrite) apply(tx *bolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte(w.bucket))
	if err != nil {
		return fmt.Errorf("make bucket %q: %w", w.bucket, err)
	}
	key := w.key
	if key == nil {
		n, err := b.NextSequence()
		if err != nil {
			return fmt.Errorf("number a pair in bucket %q: %w", w.bucket, err)
		}
		key = binary.BigEndian.AppendUint64(nil, n)
	}
	if w.value == nil {
		err = b.Delete(key)
	} else {
		err = b.Put(key, w.value)
	}
	if errors.Is(err, berrors.ErrIncompatibleValue) {
		return fmt.Errorf("%w: key %q of bucket %q is a bucket", errRefused, key, w.bucket)
	}
	if err != nil {
		return fmt.Errorf("write to bucket %q: %w", w.bucket, err)
	}
	return nil
}

// plan checks the transaction against the newest state and stages its writes. It
// stages nothing unless all of it can be.
func (tx *Tx) plan(p *planner) (Record, error) {
	if _, err := tx.check(p); err != nil {
		return Record{}, err
	}
	if err := tx.checkRoom(p); err != nil {
		return Record{}, err
	}
	end, err := tx.checkEnd(p)
	if err != nil {
		return Record{}, err
	}
	for _, key := range tx.records.keys() {
		t := tx.records[key]
		st, err := p.lookup(key)
		if err != nil {
			return Record{}, err // not after checkRecords, which has looked it up
		}
		switch {
		case t.written && t.current.Version != 0:
			p.putDirect(st, t.current, t.base == 0)
		case t.written && t.base != 0:
			st.direct = true
			p.remove(st)
		}
	}
	p.user.add(tx.userWrites())
	if end == nil {
		return Record{}, nil
	}
	return p.putDirect(end, tx.end.rec, tx.end.over == 0), nil
}

// check returns errTxConflict unless everything is as it was read.
func (tx *Tx) check(p *planner) (Record, error) {
	if err := tx.store.engine.view(func(view *bolt.Tx) error { return tx.validate(view, &p.user) }); err != nil {
		return Record{}, err
	}
	for key, t := range tx.records {
		st, live, err := p.live(key)
		if err != nil {
			return Record{}, err
		}
		var version uint64
		if live {
			version = st.rec.Version
		}
		if version != t.base {
			return Record{}, errTxConflict
		}
	}
	return Record{}, nil
}

// checkRoom refuses new keys when a limit is reached.
func (tx *Tx) checkRoom(p *planner) error {
	added, removed := int64(0), int64(0)
	for _, t := range tx.records {
		switch {
		case !t.written:
		case t.base == 0 && t.current.Version != 0:
			added++
		case t.base != 0 && t.current.Version == 0:
			removed++
		}
	}
	if tx.end != nil && tx.end.over == 0 {
		added++
	}
	if added == 0 {
		return nil
	}
	return tx.store.full(p, added-removed)
}

// checkEnd returns where the record of the DoTx goes, or nil if there is none.
func (tx *Tx) checkEnd(p *planner) (*staged, error) {
	if tx.end == nil {
		return nil, nil
	}
	st, err := p.lookup(tx.end.rec.Key)
	if err != nil {
		return nil, err
	}
	if p.liveVersion(st) != tx.end.over {
		return nil, errTxRaced
	}
	return st, nil
}

func (tx *Tx) userWrites() []userWrite {
	var writes []userWrite
	for _, name := range tx.order {
		b := tx.buckets[name]
		for key, value := range b.values {
			writes = append(writes, userWrite{name, []byte(key), value})
		}
		for _, value := range b.appended {
			writes = append(writes, userWrite{name, nil, value})
		}
	}
	return writes
}

func (r txRecords) keys() []Key {
	keys := make([]Key, 0, len(r))
	for key := range r {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// putDirect is put for a record that belongs to one commit with other writes.
func (p *planner) putDirect(st *staged, rec Record, fresh bool) Record {
	st.direct = true
	st.fresh = st.fresh || fresh
	return p.put(st, rec)
}

// transactions remember which buckets were written when, so that most reads need
// not be made again to know that they are still true.
type transactions struct {
	mu        sync.Mutex
	started   uint64
	published uint64
	last      map[string]uint64 // by bucket: the newest commit that was started
}

func (t *transactions) began() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.published
}

// start is called before a commit.
func (t *transactions) start(writes []userWrite) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started++
	if t.last == nil {
		t.last = make(map[string]uint64)
	}
	for _, w := range writes {
		t.last[w.bucket] = t.started
	}
	return t.started
}

// publish is called when a commit can be read by everybody.
func (t *transactions) publish(commit uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.published = commit
}

// untouched reports whether a bucket was not written since.
func (t *transactions) untouched(bucket string, began uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last[bucket] <= began
}
