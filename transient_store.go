package idem

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"sync/atomic"
	"time"

	"github.com/idembolt/idem/internal/procid"
)

var (
	_ Store         = (*TransientStore)(nil)
	_ Liveness      = (*TransientStore)(nil)
	_ Clock         = (*TransientStore)(nil)
	_ SecretKeeper  = (*TransientStore)(nil)
	_ EventRecorder = (*TransientStore)(nil)
)

// TransientStore works on a bbolt file without holding it: every call opens the
// file, does one operation and closes it. Many short-lived processes can so
// share one file while their guarded functions run, which takes minutes. A call
// costs an open, so a service uses BoltStore.
//
// Nobody holds the file's lock while a function runs, so claims carry the
// identity of the process (boot, process id, start time) instead. Where another
// process cannot look that up, the lease decides.
//
// It is safe for concurrent use.
type TransientStore struct {
	path   string
	config BoltConfig
	self   string
	secret []byte
	ledger ledger
	clock  atomic.Pointer[storeClock] // of the opening that was furthest ahead
}

// OpenTransient prepares to work on the file at path and creates it if there is
// none. Errors and waiting are those of OpenBoltStore, of which every call of
// the store may return any. There is nothing to close.
func OpenTransient(ctx context.Context, path string, c BoltConfig) (*TransientStore, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	c.Visitor = true
	c.CacheBytes = -1
	t := &TransientStore{path: path, config: c, self: procid.Self().String()}
	file, err := t.open(ctx, true)
	if errors.Is(err, fs.ErrNotExist) && !c.ReadOnly {
		file, err = t.open(ctx, false)
	}
	if err != nil {
		return nil, err
	}
	t.secret = file.Secret()
	t.adoptClock(file.clock)
	return t, file.Close()
}

func (t *TransientStore) open(ctx context.Context, readOnly bool) (*BoltStore, error) {
	c := t.config
	c.ReadOnly = c.ReadOnly || readOnly
	return OpenBoltStore(ctx, t.path, c)
}

// with runs fn on the open file.
func (t *TransientStore) with(ctx context.Context, readOnly bool, fn func(*BoltStore) error) error {
	file, err := t.open(ctx, readOnly)
	if err != nil {
		return err
	}
	t.adoptClock(file.clock)
	if !readOnly {
		file.ledger.merge(t.ledger.take(true))
	}
	err = fn(file)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if poisoned := (*PoisonedError)(nil); errors.As(err, &poisoned) {
		return poisoned.Cause // it was this opening's; the next call reads the truth
	}
	return err
}

// adoptClock takes over the time of another opening if it is ahead: the machine
// may have slept, or the clock been set, since the last one.
func (t *TransientStore) adoptClock(c *storeClock) {
	for old := t.clock.Load(); old == nil || c.Now().After(old.Now()); old = t.clock.Load() {
		if t.clock.CompareAndSwap(old, c) {
			return
		}
	}
}

// Flush writes counts of events that no other call has taken along. It costs
// one commit if there are any.
func (t *TransientStore) Flush(ctx context.Context) error {
	if t.ledger.empty() {
		return nil
	}
	return t.with(ctx, false, func(*BoltStore) error { return nil })
}

// Now returns the store's time. See Clock. It follows the wall clock forward,
// since other processes judge this one's leases by it.
func (t *TransientStore) Now() time.Time {
	now, wall := t.clock.Load().Now(), t.config.wall().Round(0).UTC()
	if wall.After(now) {
		return wall
	}
	return now
}

// Secret returns the secret that fingerprints in this file are keyed with.
func (t *TransientStore) Secret() []byte { return bytes.Clone(t.secret) }

// Owner returns the identity of this process. See Liveness.
func (t *TransientStore) Owner() string { return t.self }

// Alive reports whether an owner may still be at work. A process that kept the
// file open is not, or this one could not have read its record. See Liveness.
func (t *TransientStore) Alive(owner string) bool { return ownerAlive(owner, t.self) }

// RecordEvent counts the event; the counts join a later write. See Flush.
func (t *TransientStore) RecordEvent(e Event) { t.ledger.record(e, t.Now()) }

// Create implements Store.
func (t *TransientStore) Create(ctx context.Context, rec Record) (stored Record, err error) {
	err = t.with(ctx, false, func(s *BoltStore) (err error) {
		stored, err = s.Create(ctx, rec)
		return err
	})
	return stored, err
}

// Swap implements Store.
func (t *TransientStore) Swap(ctx context.Context, version uint64, rec Record) (stored Record, err error) {
	err = t.with(ctx, false, func(s *BoltStore) (err error) {
		stored, err = s.Swap(ctx, version, rec)
		return err
	})
	return stored, err
}

// Delete implements Store.
func (t *TransientStore) Delete(ctx context.Context, key Key, version uint64) error {
	return t.with(ctx, false, func(s *BoltStore) error { return s.Delete(ctx, key, version) })
}

// Get implements Store.
func (t *TransientStore) Get(ctx context.Context, key Key) (rec Record, err error) {
	err = t.with(ctx, true, func(s *BoltStore) (err error) {
		rec, err = s.Get(ctx, key)
		return err
	})
	return rec, err
}

// Scan implements Store. The file stays open, under a shared lock, while a page
// of records is read, not while the caller works on it.
func (t *TransientStore) Scan(ctx context.Context, q Query) iter.Seq2[Record, error] {
	return scanPages(q, func(after string) (page scannedPage, err error) {
		err = t.with(ctx, true, func(s *BoltStore) (err error) {
			page, err = s.scanPage(ctx, q, after)
			return err
		})
		return page, err
	})
}

// Expire implements Store. Records that ran out while the service that owns the
// file was down are left to it.
func (t *TransientStore) Expire(ctx context.Context, limit int) (removed int, err error) {
	err = t.with(ctx, false, func(s *BoltStore) (err error) {
		removed, err = s.Expire(ctx, limit)
		return err
	})
	return removed, err
}
