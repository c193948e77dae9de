package idem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// MaxTxBytes bounds the keys and values that one transaction may write.
const MaxTxBytes = 64 << 20

// reservedPrefix begins the names of the buckets that are not a caller's.
const reservedPrefix = "idem."

// Tx is a transaction on a BoltStore's file: on buckets of the caller's own, by
// Bucket, and on records, by Records. DoTx and BoltStore.Update hand one out, and
// what is written through it becomes durable with one commit, or not at all.
//
// A transaction holds no lock. Its reads see what is committed, and itself; its
// writes stay in memory. Before the commit it is checked that what was read is
// still so; if it is not, the function runs again on a new transaction. So
// transactions behave as if they had run one after the other, and a slow one
// keeps nobody else from working. A function that was given a wrong picture,
// because of changes between two reads, runs again: it neither commits on it, nor is
// an error that it returns on account of it passed on.
//
// It is safe for concurrent use. When the function has returned, every method
// returns ErrTxEnded.
type Tx struct {
	store   *BoltStore
	view    *bolt.Tx // of a View, which reads one snapshot; else nil
	attempt *Attempt // of a DoTx; else nil
	began   uint64   // how many commits of transactions were published before

	mu      sync.Mutex
	ended   bool
	err     error // that keeps it from committing
	size    int64
	reads   []txRead
	seen    int // pairs that were read
	views   int // states that they were read from, at most
	open    int // loops over a Range that have not ended
	buckets map[string]*bucketWrites
	order   []string // of buckets, as they were first written
	records txRecords
	end     *txEnd
}

// bucketWrites is what a transaction has written to a bucket.
type bucketWrites struct {
	values   map[string][]byte // nil: deleted
	appended [][]byte
}

// txEnd is the record that a DoTx ends with.
type txEnd struct {
	over uint64 // version of the record it replaces; 0 if there is none
	rec  Record
}

func newTx(s *BoltStore) *Tx {
	return &Tx{store: s, began: s.txs.began(), buckets: make(map[string]*bucketWrites), records: make(txRecords)}
}

// Attempt returns the attempt of a DoTx, or nil. Its Version is 0: nothing it
// writes needs a fence.
func (tx *Tx) Attempt() *Attempt { return tx.attempt }

// Bucket returns the bucket of that name at the top of the file, which the first
// write makes. Names that begin with "idem." are reserved: every method of such a
// bucket, and of one without a name, returns ErrInvalidInput.
func (tx *Tx) Bucket(name string) *Bucket { return &Bucket{tx, name} }

// Update runs fn in a transaction and commits it. It returns fn's error, with
// nothing written; ErrReadOnly, ErrClosed, ErrFull or ErrPoisoned as Create does;
// and ctx's error if that ends first, with nothing written.
//
// fn may run more than once and must do nothing that cannot be repeated, except
// through its transaction. One that by other means changes what it has read runs
// again for ever. A panic in fn goes on, with nothing written.
func (s *BoltStore) Update(ctx context.Context, fn func(*Tx) error) error {
	_, err := s.transact(ctx, fn)
	return err
}

// View runs fn on one durable state of the file's buckets. Its transaction cannot
// write, which is ErrReadOnly, and has no records. While fn runs the file cannot
// use its free pages again, nor grow on systems with little address space, and
// Close waits: fn should not take long, and must not use the store otherwise.
func (s *BoltStore) View(ctx context.Context, fn func(*Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	var fnErr error
	var thrown any
	returned := false
	err := s.engine.view(func(view *bolt.Tx) error {
		tx := newTx(s)
		tx.view = view
		defer func() {
			_ = tx.close()
			if !returned {
				thrown = recover() // it is no fault of the file's
			}
		}()
		fnErr = fn(tx)
		returned = true
		return nil
	})
	if thrown != nil {
		panic(thrown)
	}
	if err != nil {
		return s.readError(err)
	}
	return fnErr
}

// WatchBucket returns a channel that is closed after the next write to the bucket,
// by a transaction of this store, that became durable after the call, or
// spuriously. stop releases it; it must be called, and may be called more than
// once.
func (s *BoltStore) WatchBucket(name string) (changed <-chan struct{}, stop func()) {
	return s.watch.watch(bucketWatch(name))
}

// bucketWatch is what watchers know a bucket by: no key of a record is like it.
func bucketWatch(name string) Key { return Key{ID: name} }

// errOpenRange keeps a transaction from committing whose function has returned
// while something still reads from a Range: what it has seen is not known.
var errOpenRange = fmt.Errorf("%w: the function has returned within a Range", ErrInvalidInput)

// transact runs fn until nothing it has read was changed meanwhile, and commits.
func (s *BoltStore) transact(ctx context.Context, fn func(*Tx) error) (Record, error) {
	for {
		if err := s.enter(ctx); err != nil {
			return Record{}, err
		}
		readOnly := s.writer == nil
		s.mu.RUnlock()
		if readOnly {
			return Record{}, ErrReadOnly
		}
		rec, err := s.tryTx(ctx, fn)
		if !errors.Is(err, errTxConflict) {
			return rec, err
		}
	}
}

func (s *BoltStore) tryTx(ctx context.Context, fn func(*Tx) error) (Record, error) {
	tx := newTx(s)
	defer func() { _ = tx.close() }()
	err := fn(tx)
	if failed := tx.close(); err == nil {
		err = failed
	}
	if err != nil || tx.readsOnly() {
		if changed := tx.stillTrue(ctx); changed != nil {
			return Record{}, changed
		}
		return Record{}, err
	}
	if err := tx.checkEarly(ctx); err != nil {
		return Record{}, err
	}
	return s.write(ctx, &writeOp{size: int(tx.size), plan: tx.plan})
}

// close ends the use of the transaction and returns what keeps it from committing.
func (tx *Tx) close() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.open > 0 && !tx.ended && tx.view == nil {
		tx.err = errOpenRange
	}
	tx.ended = true
	return tx.err
}

// use checks whether a method may be called. The caller holds mu.
func (tx *Tx) use(write bool) error {
	switch {
	case tx.ended:
		return ErrTxEnded
	case write && tx.view != nil:
		return ErrReadOnly
	}
	return tx.err
}

// fail keeps the transaction from committing. The caller holds mu.
func (tx *Tx) fail(err error) error {
	if tx.err == nil {
		tx.err = err
	}
	return err
}

func (tx *Tx) grow(bytes int) error {
	tx.size += int64(bytes) + writeOverhead
	if tx.size > MaxTxBytes {
		return tx.fail(fmt.Errorf("%w: the transaction writes more than %d bytes", ErrInvalidInput, MaxTxBytes))
	}
	return nil
}

// Bucket is a bucket within a transaction: keys in byte order, each with a value.
type Bucket struct {
	tx   *Tx
	name string
}

// Get returns a copy of the value of key, or nil if there is none.
func (b *Bucket) Get(key []byte) ([]byte, error) {
	b.tx.mu.Lock()
	defer b.tx.mu.Unlock()
	if err := b.check(key, false); err != nil {
		return nil, err
	}
	if own := b.tx.buckets[b.name]; own != nil {
		if value, ok := own.values[string(key)]; ok {
			return bytes.Clone(value), nil
		}
	}
	r := txRead{bucket: b.name, from: bytes.Clone(key), to: bytes.Clone(key)}
	var value []byte
	err := b.tx.read(func(view *bolt.Tx) error {
		value = nil
		r.sum = r.scan(view, func(_, v []byte) { value = append([]byte{}, v...) })
		return nil
	})
	b.tx.seen++
	if err != nil {
		return nil, b.tx.fail(err)
	}
	b.tx.note(r)
	return value, nil
}

// Put sets the value of key: 1 to 32,768 bytes, and a value that may be empty.
func (b *Bucket) Put(key, value []byte) error {
	return b.write(key, append([]byte{}, value...))
}

// Delete removes key. It is no error if there is none.
func (b *Bucket) Delete(key []byte) error { return b.write(key, nil) }

func (b *Bucket) write(key, value []byte) error {
	b.tx.mu.Lock()
	defer b.tx.mu.Unlock()
	if err := b.check(key, true); err != nil {
		return err
	}
	if err := b.tx.grow(len(key) + len(value)); err != nil {
		return err
	}
	b.writes().values[string(key)] = value
	return nil
}

// Append adds a value under the next number of the bucket, 8 bytes in big-endian
// order, counted from 1. The number is given at the commit, in the order of
// commits, so appending transactions do not get in each other's way, and the
// transaction itself does not see what it has appended. A bucket should be written
// either by Put or by Append.
func (b *Bucket) Append(value []byte) error {
	b.tx.mu.Lock()
	defer b.tx.mu.Unlock()
	if err := b.check([]byte{0}, true); err != nil {
		return err
	}
	if err := b.tx.grow(len(value)); err != nil {
		return err
	}
	w := b.writes()
	w.appended = append(w.appended, append([]byte{}, value...))
	return nil
}

func (b *Bucket) writes() *bucketWrites {
	w := b.tx.buckets[b.name]
	if w == nil {
		w = &bucketWrites{values: make(map[string][]byte)}
		b.tx.buckets[b.name] = w
		b.tx.order = append(b.tx.order, b.name)
	}
	return w
}

func (b *Bucket) check(key []byte, write bool) error {
	if err := b.tx.use(write); err != nil {
		return err
	}
	switch {
	case b.name == "" || len(b.name) > bolt.MaxKeySize:
		return b.tx.fail(fmt.Errorf("%w: a bucket needs a name of 1 to %d bytes", ErrInvalidInput, bolt.MaxKeySize))
	case strings.HasPrefix(b.name, reservedPrefix):
		return b.tx.fail(fmt.Errorf("%w: bucket %q: names that begin with %q are reserved", ErrInvalidInput, b.name, reservedPrefix))
	case len(key) == 0 || len(key) > bolt.MaxKeySize:
		return b.tx.fail(fmt.Errorf("%w: bucket %q: a key has 1 to %d bytes, this one %d", ErrInvalidInput, b.name, bolt.MaxKeySize, len(key)))
	}
	return nil
}
