package idem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/idembolt/idem/internal/fileid"
	"github.com/idembolt/idem/internal/procid"
)

var (
	_ Store         = (*BoltStore)(nil)
	_ Waiter        = (*BoltStore)(nil)
	_ RelaxedStore  = (*BoltStore)(nil)
	_ Liveness      = (*BoltStore)(nil)
	_ Clock         = (*BoltStore)(nil)
	_ SecretKeeper  = (*BoltStore)(nil)
	_ EventRecorder = (*BoltStore)(nil)
)

// residentOwner begins the owner of records claimed by a process that keeps the
// file open; what follows is its incarnation.
const residentOwner = "r:"

// BoltStore keeps records in one bbolt file, which it holds locked until Close.
// For processes that must not hold the file there is TransientStore.
//
// The lock proves something: a record claimed by an earlier holder cannot have
// a living owner, so its attempt is known to be interrupted the moment the file
// is opened, whatever its lease says.
//
// A failed commit leaves it open whether the write is on disk. The store is
// then poisoned: every later call returns ErrPoisoned, and opening the file
// again reads what became of it. Only a commit that failed for want of space,
// and demonstrably wrote nothing, is ErrFull and leaves the store usable.
//
// It is safe for concurrent use by one process.
type BoltStore struct {
	path        string
	config      BoltConfig
	incarnation string
	file        fileMeta
	opened      fileid.File  // the file that is open
	mode        fs.FileMode  // of it, the permission bits
	fileSize    atomic.Int64 // the largest seen: bbolt never makes a file smaller
	handle      *os.File
	db          *bolt.DB
	engine      engine
	writer      *writer // nil when read-only
	clock       *storeClock
	cache       *cache
	watch       watchers
	ledger      ledger
	holds       holds
	txs         transactions

	poisoned atomic.Pointer[PoisonedError]
	mu       sync.RWMutex // held for reading during every call
	closed   bool
}

// Path returns the absolute path of the file.
func (s *BoltStore) Path() string { return s.path }

// Now returns the store's time, which never goes back, across restarts either.
func (s *BoltStore) Now() time.Time { return s.clock.Now() }

// Secret returns the secret that fingerprints in this file are keyed with.
func (s *BoltStore) Secret() []byte { return bytes.Clone(s.file.secret) }

// Watch signals the next change of key made through this store. See Waiter.
func (s *BoltStore) Watch(key Key) (<-chan struct{}, func()) { return s.watch.watch(key) }

// Owner returns this opening of the file. See Liveness.
func (s *BoltStore) Owner() string { return residentOwner + s.incarnation }

// Alive reports whether an owner may still be at work: this opening of the file
// is, an earlier one is not, and a process that works without holding the file
// is looked up. See Liveness.
func (s *BoltStore) Alive(owner string) bool { return ownerAlive(owner, s.Owner()) }

// ownerAlive judges an owner for a process that claims keys as self.
func ownerAlive(owner, self string) bool {
	if owner == self {
		return true
	}
	if strings.HasPrefix(owner, residentOwner) {
		return false // its holder had to let go of the file before anybody else could read the record
	}
	id, err := procid.Parse(owner)
	return err != nil || id.Liveness() != procid.Dead
}

// RecordEvent counts the event; the counts join a later commit. See
// EventRecorder.
func (s *BoltStore) RecordEvent(e Event) { s.ledger.record(e, s.clock.Now()) }

// Create implements Store.
func (s *BoltStore) Create(ctx context.Context, rec Record) (Record, error) {
	if err := rec.Validate(); err != nil {
		return Record{}, err
	}
	return s.write(ctx, &writeOp{size: len(rec.Value) + stepBytes(rec.Steps), plan: func(p *planner) (Record, error) {
		st, live, err := p.live(rec.Key)
		if err != nil {
			return Record{}, err
		}
		if live {
			return st.rec.clone(), ErrConflict
		}
		if err := s.full(p, 1); err != nil {
			return Record{}, err
		}
		st.fresh = true
		return p.put(st, rec), nil
	}})
}

// Swap implements Store.
func (s *BoltStore) Swap(ctx context.Context, version uint64, rec Record) (Record, error) {
	return s.swap(ctx, version, rec, false)
}

// SwapRelaxed implements RelaxedStore. The change is made durable together with
// the next one that is not relaxed, or after 2 ms.
func (s *BoltStore) SwapRelaxed(ctx context.Context, version uint64, rec Record) (Record, error) {
	return s.swap(ctx, version, rec, true)
}

func (s *BoltStore) swap(ctx context.Context, version uint64, rec Record, relaxed bool) (Record, error) {
	if err := rec.Validate(); err != nil {
		return Record{}, err
	}
	return s.write(ctx, &writeOp{size: len(rec.Value) + stepBytes(rec.Steps), relaxed: relaxed, plan: func(p *planner) (Record, error) {
		st, live, err := p.live(rec.Key)
		switch {
		case err != nil:
			return Record{}, err
		case !live:
			return Record{}, ErrConflict
		case !st.is(version):
			return st.rec.clone(), ErrConflict
		}
		return p.put(st, rec), nil
	}})
}

// Delete implements Store.
func (s *BoltStore) Delete(ctx context.Context, key Key, version uint64) error {
	if err := key.Validate(); err != nil {
		return err // its text form could be that of a valid key
	}
	_, err := s.write(ctx, &writeOp{plan: func(p *planner) (Record, error) {
		st, live, err := p.live(key)
		switch {
		case err != nil:
			return Record{}, err
		case !live:
			return Record{}, ErrNotFound
		case !st.is(version):
			return Record{}, ErrConflict
		}
		p.remove(st)
		return Record{}, nil
	}})
	return err
}

// Get implements Store.
func (s *BoltStore) Get(ctx context.Context, key Key) (Record, error) {
	if err := s.enter(ctx); err != nil {
		return Record{}, err
	}
	defer s.mu.RUnlock()
	rec, err := s.get(key)
	if err == nil || errors.Is(err, ErrNotFound) {
		if held, ok := s.holds.covering(key, rec.Version); ok {
			return held, nil
		}
	}
	return rec, err
}

// get returns what is stored under the key.
func (s *BoltStore) get(key Key) (Record, error) {
	if cached, ok := s.cache.get(key); ok {
		if s.clock.expired(cached, s.clock.Now()) {
			return Record{}, ErrNotFound
		}
		return cached.clone(), nil
	}
	if err := key.Validate(); err != nil {
		return Record{}, err // its text form could be that of a valid key
	}
	mark := s.cache.mark(key)
	rec, err := s.read(key)
	if err != nil {
		return Record{}, err
	}
	if rec.Version == 0 {
		s.cache.fillAbsent(mark, key)
		return Record{}, ErrNotFound
	}
	if s.clock.expired(&rec, s.clock.Now()) {
		return Record{}, ErrNotFound
	}
	s.cache.fill(mark, &rec)
	return rec, nil
}

// read gets a record from the engine; its Version is 0 if there is none.
func (s *BoltStore) read(key Key) (Record, error) {
	var rec Record
	text := []byte(key.String())
	err := s.engine.get(text, func(enc []byte) error {
		if enc == nil {
			return nil
		}
		var err error
		rec, err = decodeRecord(text, enc, true)
		return err
	})
	if err == nil && rec.Version != 0 {
		err = s.annotate([]string{string(text)}, func(int) *Record { return &rec })
	}
	return rec, s.readError(err)
}

// annotate fills in what is counted beside the records, best effort: a damaged
// note does not stand in the way of its record.
func (s *BoltStore) annotate(keys []string, rec func(i int) *Record) error {
	return s.engine.annotate(keys, func(i int, enc []byte) error {
		if n, err := decodeNote(enc); err == nil {
			n.fill(rec(i))
		}
		return nil
	})
}

// full refuses a new key when a limit is reached.
func (s *BoltStore) full(p *planner, added int64) error {
	if limit := s.config.MaxRecords; limit > 0 {
		records, _ := s.engine.totals()
		if records += p.added; records+added > limit {
			return fmt.Errorf("%w: it holds %d records, the limit is %d", ErrFull, records, limit)
		}
	}
	if limit := s.config.MaxBytes; limit > 0 {
		if used := s.engine.used(); used >= limit {
			return fmt.Errorf("%w: %d bytes are in use, the limit is %d", ErrFull, used, limit)
		}
	}
	return nil
}

// enter begins a call, which ends with mu.RUnlock: Close waits for it.
func (s *BoltStore) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	if err := s.usable(); err != nil {
		s.mu.RUnlock()
		return err
	}
	return nil
}

// usable is what stands against any work on the store. The caller holds mu or
// is the writer, which Close waits for.
func (s *BoltStore) usable() error {
	if p := s.poisoned.Load(); p != nil {
		return p
	}
	if s.closed {
		return ErrClosed
	}
	return nil
}

func (s *BoltStore) write(ctx context.Context, op *writeOp) (Record, error) {
	if err := s.enter(ctx); err != nil {
		return Record{}, err
	}
	defer s.mu.RUnlock()
	if s.writer == nil {
		return Record{}, ErrReadOnly
	}
	return s.writer.do(ctx, op)
}

// poison makes every later call fail with the cause and returns the error for
// this one. The first cause stays.
func (s *BoltStore) poison(cause error) error {
	s.poisoned.CompareAndSwap(nil, &PoisonedError{Path: s.path, Cause: cause})
	return s.poisoned.Load()
}

// readError poisons the store if reading went beyond a damaged record: after a
// fault or a panic inside bbolt its locks may be left held, and after a failed
// commit what a read would see may not be on disk.
func (s *BoltStore) readError(err error) error {
	if isFault(err) || errors.Is(err, errOutcomeUnknown) {
		return s.poison(err)
	}
	return err
}

// checkIdentity makes sure that the path still names the open file, or a second
// process could lock and use the new file while this one goes on with the old;
// and that the file was not cut short, or records behind its end could look as
// if they had never been there.
func (s *BoltStore) checkIdentity() error {
	largest := s.fileSize.Load() // before looking: the file may be growing now
	now, err := fileid.At(s.path)
	switch {
	case err != nil:
		return fmt.Errorf("the file was removed: %w", err)
	case !now.Same(s.opened):
		return errors.New("the file was replaced by another one")
	case now.Size < largest:
		return fmt.Errorf("%w: the file was cut short, from %d bytes to %d", ErrCorrupt, largest, now.Size)
	}
	for largest < now.Size && !s.fileSize.CompareAndSwap(largest, now.Size) {
		largest = s.fileSize.Load()
	}
	return nil
}

// Close waits for calls under way, writes what is left to write, and releases
// the file. A second Close returns nil. After a fault the memory map is left in
// place, since bbolt's locks may be held, and only the file is closed.
func (s *BoltStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	var last *batch
	var lost error // what was put off
	if s.writer != nil {
		lost = s.writer.close()
		last = s.writer.lastBatch()
	}
	s.closed = true
	if p := s.poisoned.Load(); p != nil {
		if isFault(p) {
			return abandon(s.handle)
		}
		last = nil
	}
	err := s.engine.close(last)
	if errors.Is(err, errNoSpace) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return errors.Join(lost, err)
}
