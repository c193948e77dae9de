package outbox

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/idembolt/idem"
)

// DefaultBucket is the bucket of events unless WithBucket names another.
const DefaultBucket = "outbox"

// maxBucketBytes leaves room for the names of the buckets beside it.
const maxBucketBytes = 200

// Outbox is a bucket of events in a store's file. Make one with New. It is safe
// for concurrent use.
type Outbox struct {
	store *idem.BoltStore
	name  string

	mu      sync.Mutex
	highest uint64 // number known to have been given
	lastRun string // the last run of a relay of this Outbox that has ended
}

// Option configures an Outbox.
type Option func(*Outbox)

// WithBucket keeps the events in another bucket: 1 to 200 bytes, not beginning
// with "idem.". The buckets name.attempts, name.parked and name.relay belong to it.
func WithBucket(name string) Option { return func(o *Outbox) { o.name = name } }

// New returns the outbox of a store, which stays the caller's to close. It writes
// nothing. Errors match ErrInvalidConfig.
func New(store *idem.BoltStore, opts ...Option) (*Outbox, error) {
	o := &Outbox{store: store, name: DefaultBucket}
	for _, opt := range opts {
		opt(o)
	}
	switch {
	case store == nil:
		return nil, fmt.Errorf("%w: the store is nil", ErrInvalidConfig)
	case o.name == "" || len(o.name) > maxBucketBytes || strings.HasPrefix(o.name, "idem."):
		return nil, fmt.Errorf(`%w: bucket %.40q: 1 to %d bytes that do not begin with "idem."`, ErrInvalidConfig, o.name, maxBucketBytes)
	}
	return o, nil
}

func (o *Outbox) attemptsBucket() string { return o.name + ".attempts" }
func (o *Outbox) parkedBucket() string   { return o.name + ".parked" }
func (o *Outbox) relayBucket() string    { return o.name + ".relay" }

// now is the time events are stamped with.
func (o *Outbox) now() time.Time { return o.store.Now().UTC().Truncate(time.Microsecond) }

// Append adds events to the transaction, which must be one of the outbox's store.
// They are published in this order when it has committed, and are gone if it does
// not. Append reads nothing, so transactions that append do not get in each
// other's way. The events themselves are not changed.
//
// It returns an error that matches ErrInvalidEvent for an event that breaks a
// limit, with none of the events added, and the transaction's errors. The
// transaction's function must return it: a transaction that commits all the same
// commits without its events.
func (o *Outbox) Append(tx *idem.Tx, events ...Event) error {
	encoded := make([][]byte, len(events))
	now := o.now()
	for i, e := range events {
		e.complete(now)
		if err := e.validate(); err != nil {
			return err
		}
		var err error
		if encoded[i], err = e.encode(); err != nil {
			return fmt.Errorf("append event %q: %w", e.ID, err)
		}
	}
	for i, enc := range encoded {
		if err := tx.Bucket(o.name).Append(enc); err != nil {
			return fmt.Errorf("append event %d of %d: %w", i+1, len(encoded), err)
		}
	}
	return nil
}

// Entry is an event that is not yet published, or of which that is not yet known.
type Entry struct {
	// Number is its place in the order of commits, from 1. Numbers are not given
	// twice; Retry gives an event a new one.
	Number uint64
	// Event is zero if Err is set.
	Event Event
	// Attempts is how many have failed, LastError the last one's error.
	Attempts  int
	LastError string
	// Err says why the stored bytes are no event. The relay parks them.
	Err error

	raw     []byte // if Err is set
	size    int    // in the file
	suspect bool   // a relay that tried it did not get to say how it went
}

// List returns up to limit events that are waiting, in order, beginning behind the
// number after; 0 begins at the first. To page, pass the last one's number.
func (o *Outbox) List(ctx context.Context, after uint64, limit int) ([]Entry, error) {
	if limit <= 0 || after == math.MaxUint64 {
		return nil, nil
	}
	entries, _, err := o.read(ctx, stretch{after + 1, math.MaxUint64}, limit, math.MaxInt)
	return entries, err
}

// read returns the first entries of a stretch, and whether these are all. It
// decodes them outside of the View, which keeps pages of the file from being used
// again.
func (o *Outbox) read(ctx context.Context, s stretch, limit, bytes int) (entries []Entry, all bool, err error) {
	var pairs, notes []idem.Pair
	err = o.store.View(ctx, func(tx *idem.Tx) error {
		all = true
		for p, err := range s.pairs(tx.Bucket(o.name)) {
			if err != nil {
				return err
			}
			if len(pairs) == limit || bytes <= 0 {
				all = false
				break
			}
			pairs = append(pairs, p)
			bytes -= len(p.Value)
		}
		if len(pairs) == 0 {
			return nil
		}
		for p, err := range tx.Bucket(o.attemptsBucket()).Range(pairs[0].Key, pairs[len(pairs)-1].Key) {
			if err != nil {
				return err
			}
			notes = append(notes, p)
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("read outbox %q: %w", o.name, err)
	}
	return decodeEntries(pairs, notes), all, nil
}

func decodeEntries(pairs, notes []idem.Pair) []Entry {
	entries := make([]Entry, 0, len(pairs))
	for _, p := range pairs {
		e := Entry{Number: binary.BigEndian.Uint64(p.Key), size: len(p.Value)}
		if e.Event, e.Err = decodeEvent(p.Value); e.Err != nil {
			e.raw = p.Value
		}
		for len(notes) > 0 && string(notes[0].Key) < string(p.Key) {
			notes = notes[1:]
		}
		if len(notes) > 0 && string(notes[0].Key) == string(p.Key) {
			note := decodeNote(notes[0].Value)
			e.Attempts, e.LastError, e.suspect = note.Count, note.Error, note.Crashed
		}
		entries = append(entries, e)
	}
	return entries
}

// attemptNote is what is kept of an event's failed attempts.
type attemptNote struct {
	Count   int    `json:"n"`
	Error   string `json:"e"`
	Crashed bool   `json:"x,omitempty"` // the last one ended with the process
}

// decodeNote reads a note, best effort: without it the event gets a few attempts
// more.
func decodeNote(enc []byte) (note attemptNote) {
	if json.Unmarshal(enc, &note) != nil {
		return attemptNote{}
	}
	return note
}

// numberBytes is the length of the keys that Append makes.
const numberBytes = 8

func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
