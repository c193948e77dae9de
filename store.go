package idem

import (
	"context"
	"iter"
	"time"
)

// Store keeps one record per key and changes it by compare-and-swap. It knows
// nothing about attempts, leases or replays: those live in Guard, once, on top
// of these six methods. Package idemtest holds the suite that certifies one.
//
// All methods may be called concurrently, for the same key too. On any one key
// Create, Swap, Delete and Get are linearizable.
//
// A record whose Expired method reports true at the store's time is absent for
// every method but Expire and a Scan that asks for it. A store may keep records
// longer than their ExpiresAt (see BoltConfig.Grace), never shorter.
//
// Durability: when Create, Swap or Delete returns nil, the change survives a
// crash of the process and, for a store on disk, of the machine. Reads return
// durable state only.
//
// Slices: a store copies what it is given and what it returns.
//
// Keys: every method that takes a key or a record refuses an invalid key with
// ErrInvalidKey.
//
// Context: when ctx ends before the store has begun to write, nothing is
// written and the error matches ctx.Err(). Once writing has begun the call
// finishes and returns its true outcome where the store can know it. Any other
// error than the ones named below leaves the outcome open: the caller must read
// the key to learn it.
type Store interface {
	// Create stores rec if its key has no live record, and returns it with the
	// Version that it was given. If there is one, Create returns that record and
	// ErrConflict. A store at its limits returns ErrFull; a record that breaks a
	// limit is refused with ErrInvalidRecord or ErrInvalidKey.
	Create(ctx context.Context, rec Record) (Record, error)

	// Swap replaces the record of rec.Key if its version is still the one
	// given, and returns rec with its new Version. Otherwise it returns the
	// current record (the zero Record if there is none) and ErrConflict. It is
	// not refused with ErrFull because of limits on the number of records: an
	// attempt that was let in may always finish.
	Swap(ctx context.Context, version uint64, rec Record) (Record, error)

	// Delete removes the record if its version is still the one given. It
	// returns ErrNotFound if there is no live record, ErrConflict if its version
	// is another.
	Delete(ctx context.Context, key Key, version uint64) error

	// Get returns the live record of key, or ErrNotFound. A record that cannot be
	// read is ErrCorrupt or ErrFormat, never ErrNotFound.
	Get(ctx context.Context, key Key) (Record, error)

	// Scan yields records in ascending byte order of the key's text form. Each
	// record is consistent in itself; the sequence is not a snapshot. A record
	// that cannot be read is yielded with its Key set and a non-nil error, and
	// the scan goes on; an error with a zero Key ends it.
	Scan(ctx context.Context, q Query) iter.Seq2[Record, error]

	// Expire removes up to limit expired records, oldest first, and returns how
	// many it removed. It writes nothing when there are none. It never removes
	// a Processing record whose lease still runs.
	Expire(ctx context.Context, limit int) (int, error)
}

// Query selects the records of a Scan. The zero value selects all live ones.
type Query struct {
	// Prefix selects keys whose text form begins with it. "" selects all.
	Prefix string
	// After skips keys up to and including this text form. "" skips none.
	After string
	// Expired includes records that have expired and were not yet removed.
	Expired bool
	// OmitValues leaves Value nil, for callers that only list.
	OmitValues bool
}

// Waiter is implemented by stores that can signal a change of a key, so that
// waiting for an attempt in progress needs no polling.
type Waiter interface {
	// Watch returns a channel that is closed after the next change of key that
	// became durable after the call, or spuriously. stop releases it; it must be
	// called, and may be called more than once.
	Watch(key Key) (changed <-chan struct{}, stop func())
}

// RelaxedStore is implemented by stores that can let a caller go on before a
// change is durable. With others Relaxed means Strict.
type RelaxedStore interface {
	// SwapRelaxed is Swap that returns when the change is checked and accepted.
	// It is durable a few milliseconds later, and Close makes it so. If the
	// process dies or the write fails before that, it was never made. Nobody
	// reads it or is told of it before it is durable.
	SwapRelaxed(ctx context.Context, version uint64, rec Record) (Record, error)
}

// Liveness is implemented by stores that can tell whether the owner of a
// Processing record still lives. Where a store cannot, only the lease counts.
type Liveness interface {
	// Owner returns the identity under which this process claims keys now.
	Owner() string
	// Alive reports whether an owner may still be at work. It returns true when
	// that cannot be known.
	Alive(owner string) bool
}

// Clock is implemented by stores that keep their own time. Others are used with
// time.Now.
type Clock interface {
	// Now returns the store's time. It never goes back.
	Now() time.Time
}

// StoreNow returns the time by which a store judges what has expired, in UTC and
// cut to microseconds as records keep it: its own if it is a Clock, else that of
// the machine.
func StoreNow(s Store) time.Time {
	now := time.Now()
	if c, ok := s.(Clock); ok {
		now = c.Now()
	}
	return now.UTC().Truncate(time.Microsecond)
}

// SecretKeeper is implemented by stores that hold the secret with which
// fingerprints are keyed. With others WithSecret is needed.
type SecretKeeper interface {
	// Secret returns at least 16 random bytes that stay the same for the
	// lifetime of the records.
	Secret() []byte
}

// EventRecorder is implemented by stores that keep counts of what happened
// beside the records, so that tools can show them later. Recording is best
// effort and never costs a sync of its own.
type EventRecorder interface {
	RecordEvent(e Event)
}
