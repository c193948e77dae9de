package idem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"iter"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// errTxConflict makes a transaction run again: something it has read was changed.
var errTxConflict = errors.New("a transaction has changed what was read")

// txRead is a stretch of a bucket that a transaction has read, from one key to
// another, both included, and what was there.
type txRead struct {
	bucket   string
	from, to []byte // nil: from the first, to the last
	sum      [sha256.Size]byte
}

// scan hashes the stretch as it is now, and hands it to each.
func (r *txRead) scan(view *bolt.Tx, each func(key, value []byte)) (sum [sha256.Size]byte) {
	h := newPairHash()
	if b := view.Bucket([]byte(r.bucket)); b != nil {
		c := b.Cursor()
		for k, v := c.Seek(r.from); k != nil && (r.to == nil || bytes.Compare(k, r.to) <= 0); k, v = c.Next() {
			if v == nil {
				continue // a bucket within the bucket: not made by a Tx
			}
			h.add(k, v)
			each(k, v)
		}
	}
	return h.sum()
}

func (r *txRead) holds(key []byte) bool {
	return bytes.Compare(key, r.from) >= 0 && (r.to == nil || bytes.Compare(key, r.to) <= 0)
}

// read runs fn on a durable state of the file. The caller holds mu.
func (tx *Tx) read(fn func(*bolt.Tx) error) error {
	if tx.view != nil {
		return tx.store.readError(guarded(func() error { return fn(tx.view) }))
	}
	tx.views++
	s := tx.store
	if err := s.enter(context.Background()); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	return s.readError(s.engine.view(fn))
}

func (tx *Tx) note(r txRead) {
	if tx.view == nil && !tx.ended {
		tx.reads = append(tx.reads, r)
	}
}

func (tx *Tx) readsOnly() bool { return len(tx.buckets)+len(tx.records) == 0 && tx.end == nil }

// stillTrue returns errTxConflict unless everything that was read was so at one
// time.
func (tx *Tx) stillTrue(ctx context.Context) error {
	if tx.views+len(tx.records) < 2 {
		return nil
	}
	if len(tx.records) > 0 { // only the writer sees records and buckets of one moment
		_, err := tx.store.write(ctx, &writeOp{plan: tx.check})
		return err
	}
	if err := tx.store.enter(ctx); err != nil {
		return err
	}
	defer tx.store.mu.RUnlock()
	err := tx.store.engine.view(func(view *bolt.Tx) error { return tx.validate(view, &userWrites{}) })
	return tx.store.readError(err)
}

// earlyCheck is the number of pairs from which reads are checked before the commit
// too.
const earlyCheck = 128

// checkEarly checks what was read in the caller's own time. Who commits for all
// then has only that left to check again which was written in between.
func (tx *Tx) checkEarly(ctx context.Context) error {
	s := tx.store
	if tx.seen < earlyCheck {
		return nil
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	began := s.txs.began()
	if err := s.engine.view(func(view *bolt.Tx) error { return tx.validate(view, &userWrites{}) }); err != nil {
		return s.readError(err)
	}
	tx.began = began
	return nil
}

// validate returns errTxConflict if a stretch that was read is different now, in
// the file or because of what is staged over it.
func (tx *Tx) validate(view *bolt.Tx, over *userWrites) error {
	for _, r := range tx.reads {
		if over.touch(&r) {
			return errTxConflict
		}
		if tx.store.txs.untouched(r.bucket, tx.began) {
			continue
		}
		if r.scan(view, func([]byte, []byte) {}) != r.sum {
			return errTxConflict
		}
	}
	return nil
}

// Pair is a key of a bucket and its value. Both are copies.
type Pair struct{ Key, Value []byte }

// rangePage and rangeBytes bound what is read, and copied, at a time.
const (
	rangePage  = 256
	rangeBytes = 1 << 20
)

// Range yields the pairs from one key to another, both included, in the order of
// their keys; nil stands for the first and the last. What the transaction has
// written before is seen, what it writes during the loop may not be. An error ends
// the sequence.
func (b *Bucket) Range(from, to []byte) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		own, err := b.ownKeys(from, to)
		if err != nil {
			yield(Pair{}, err)
			return
		}
		r := txRead{bucket: b.name, from: bytes.Clone(from), to: bytes.Clone(to)}
		h := newPairHash()
		defer func() {
			r.sum = h.sum()
			b.tx.mu.Lock()
			defer b.tx.mu.Unlock()
			b.tx.open--
			b.tx.note(r)
		}()
		show := func(p Pair) bool {
			key := bytes.Clone(p.Key) // the loop may change its copy
			if yield(p, nil) {
				return true
			}
			r.to = key // no more than this was seen
			return false
		}
		for file, err := range b.filePairs(from, to) {
			if err != nil {
				yield(Pair{}, err)
				return
			}
			for len(own) > 0 && bytes.Compare(own[0].Key, file.Key) < 0 {
				p := own[0]
				if own = own[1:]; p.Value != nil && !show(p) {
					return
				}
			}
			h.add(file.Key, file.Value)
			if len(own) > 0 && bytes.Equal(own[0].Key, file.Key) {
				file, own = own[0], own[1:]
			}
			if file.Value != nil && !show(file) {
				return
			}
		}
		for _, p := range own {
			if p.Value != nil && !show(p) {
				return
			}
		}
	}
}

// ownKeys are the transaction's own writes in a stretch, in order.
func (b *Bucket) ownKeys(from, to []byte) ([]Pair, error) {
	b.tx.mu.Lock()
	defer b.tx.mu.Unlock()
	if err := b.check([]byte{0}, false); err != nil {
		return nil, err
	}
	b.tx.open++
	w := b.tx.buckets[b.name]
	if w == nil {
		return nil, nil
	}
	var own []Pair
	stretch := txRead{from: from, to: to}
	for _, key := range slices.Sorted(maps.Keys(w.values)) {
		if stretch.holds([]byte(key)) {
			own = append(own, Pair{[]byte(key), bytes.Clone(w.values[key])})
		}
	}
	return own, nil
}

// filePairs reads page after page.
func (b *Bucket) filePairs(from, to []byte) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		for next, more := bytes.Clone(from), true; more; {
			page, all, err := b.filePage(next, to)
			if err != nil {
				yield(Pair{}, err)
				return
			}
			if more = !all; more {
				next = append(bytes.Clone(page[len(page)-1].Key), 0)
			}
			for _, p := range page {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

// filePage reads pairs until one of the bounds is reached; all says that it was not.
func (b *Bucket) filePage(from, to []byte) (page []Pair, all bool, err error) {
	b.tx.mu.Lock()
	defer b.tx.mu.Unlock()
	if err := b.tx.use(false); err != nil {
		return nil, false, err
	}
	err = b.tx.read(func(view *bolt.Tx) error {
		page, all = nil, true
		bucket := view.Bucket([]byte(b.name))
		if bucket == nil {
			return nil
		}
		c, size := bucket.Cursor(), 0
		for k, v := c.Seek(from); k != nil && (to == nil || bytes.Compare(k, to) <= 0); k, v = c.Next() {
			if v == nil {
				continue
			}
			if len(page) == rangePage || size >= rangeBytes {
				all = false
				return nil
			}
			page, size = append(page, Pair{bytes.Clone(k), append([]byte{}, v...)}), size+len(v)
		}
		return nil
	})
	if err != nil {
		return nil, false, b.tx.fail(fmt.Errorf("read bucket %q: %w", b.name, err))
	}
	b.tx.seen += len(page)
	return page, all, nil
}

// pairHash hashes keys and values so that no two sequences of them look alike.
type pairHash struct{ h hash.Hash }

func newPairHash() *pairHash { return &pairHash{sha256.New()} }

func (p *pairHash) add(key, value []byte) {
	var sizes [16]byte
	binary.BigEndian.PutUint64(sizes[:], uint64(len(key)))
	binary.BigEndian.PutUint64(sizes[8:], uint64(len(value)))
	for _, b := range [][]byte{sizes[:], key, value} {
		_, _ = p.h.Write(b) // a hash does not fail
	}
}

func (p *pairHash) sum() (sum [sha256.Size]byte) {
	p.h.Sum(sum[:0])
	return sum
}
