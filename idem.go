// Package idem makes work happen once per key: a retry, a double click, a
// redelivered message or a re-run job gets the result of the first run instead
// of a second one. Records live in one local bbolt file; no server is needed.
//
//	g, err := idem.Open("payments.db", idem.WithPolicy(idem.Payments))
//	if err != nil {
//		return err
//	}
//	defer g.Close()
//
//	key := idem.Key{Scope: "charge", ID: order.ID}
//	res, err := idem.Do(ctx, g, key, order, func(ctx context.Context, a *idem.Attempt) (Receipt, error) {
//		return provider.Charge(ctx, a.ChildKey("provider"), order)
//	})
//
// # Keys
//
// A [Key] is a Scope and an ID. The scope names the operation and, where there
// are tenants, the tenant: it is what keeps one caller's result from being
// replayed to another, so it is required and never defaulted.
//
// # What a repeat gets
//
// [Do] writes a Processing record before the function runs and a final record
// after it. What a later call with the same key gets depends on what it finds:
//
//   - nothing, or an expired record: it runs;
//   - Completed: the stored value, with Replayed set;
//   - Failed (see [Permanent]): a [*FailedError] with the stored message;
//   - Processing: a [*InProgressError], or the result of the first call when
//     [WithWait] is given;
//   - Interrupted: what the policy says, see below;
//   - any of these with other input: a [*MismatchError] that names the parts.
//
// # How a run ends
//
// A nil error completes the record. [Permanent] stores the failure. A plain
// error means that nothing happened: the key is released and a repeat runs. An
// error that leaves the outcome open ([Unknown], an ended context, a network
// timeout, a panic) makes the record Interrupted, because a timeout from a
// payment provider does not mean "not charged".
//
// # Interrupted attempts
//
// When the process dies in the middle of an attempt nobody knows whether the
// work was done. The next process to open the file sees at once that the owner
// is gone: bbolt's exclusive lock proves it. What then happens is chosen per
// operation with [Policy.OnInterrupted]: [FailClosed] reports
// [*InterruptedError] until a person settles it with idemctl resolve, [Rerun]
// runs again, [Reconcile] asks the outside world.
//
// # Lease and retention
//
// The lease says how long a running attempt is trusted without a sign of life;
// it is renewed while the function runs. The retention says how long a finished
// record answers repeats. They are separate settings of a [Policy].
//
// # Limits
//
// idem promises at most one live attempt per key while the record is retained,
// not exactly-once delivery: an effect outside the file and the record of it
// cannot commit together. The file belongs to one machine and a local file
// system. A store whose disk failed to sync refuses all further work until it
// is opened again.
package idem

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a key's two halves and of a record's fields, in bytes.
const (
	MaxScopeBytes = 128
	MaxIDBytes    = 255

	// MaxValueBytes bounds a stored value. A run whose value is larger is
	// recorded as Completed without it; repeats get ErrValueNotKept.
	MaxValueBytes = 16 << 20

	maxKindBytes  = 32
	maxOwnerBytes = 256
	maxTraceBytes = 128
	maxErrorBytes = 4 << 10
	maxNoteBytes  = 1 << 10
)

// Key names one intent. Two keys are the same only if both halves are equal.
// The zero value is not valid.
type Key struct {
	// Scope names the operation and, where there are tenants, the tenant:
	// 1 to 128 bytes of ASCII letters, digits and "._:@-".
	Scope string
	// ID tells intents of one scope apart: 1 to 255 bytes of valid UTF-8
	// without control characters.
	ID string
}

// String returns the text form scope/id. It is unambiguous because a scope
// cannot contain a slash. It is not escaped: an ID may hold any printable
// character a client chose.
func (k Key) String() string { return k.Scope + "/" + k.ID }

// ChildKey derives an idempotency key for a call to another system. It depends on
// the key and the name only, so every attempt of one intent sends the same one,
// and a ReconcileFunc can tell which one was sent. It has 32 hexadecimal digits.
func (k Key) ChildKey(name string) string {
	key := k.String()
	h := sha256.New()
	fmt.Fprintf(h, "idem child key\x00%d\x00%s%s", len(key), key, name)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ParseKey reads the text form scope/id. It returns a *KeyError if the text has
// no slash or either half is not valid.
func ParseKey(s string) (Key, error) {
	scope, id, found := strings.Cut(s, "/")
	if !found {
		return Key{}, &KeyError{Key: Key{ID: s}, Reason: RejectNoScope, Detail: "a key is written scope/id"}
	}
	k := Key{Scope: scope, ID: id}
	return k, k.Validate()
}

// Validate returns a *KeyError that says which rule the key breaks, or nil.
func (k Key) Validate() error {
	reject := func(r RejectReason, detail string) error {
		return &KeyError{Key: k, Reason: r, Detail: detail}
	}
	switch {
	case k.Scope == "":
		return reject(RejectNoScope, "the scope is empty: name the operation, and the tenant if there is one")
	case k.ID == "":
		return reject(RejectMissing, "the id is empty")
	case len(k.Scope) > MaxScopeBytes:
		return reject(RejectTooLong, fmt.Sprintf("the scope has %d bytes, at most %d are allowed", len(k.Scope), MaxScopeBytes))
	case len(k.ID) > MaxIDBytes:
		return reject(RejectTooLong, fmt.Sprintf("the id has %d bytes, at most %d are allowed", len(k.ID), MaxIDBytes))
	case strings.IndexFunc(k.Scope, notScopeRune) >= 0:
		return reject(RejectCharset, `the scope may hold only ASCII letters, digits and "._:@-"`)
	case !utf8.ValidString(k.ID):
		return reject(RejectCharset, "the id is not valid UTF-8")
	case strings.IndexFunc(k.ID, unicode.IsControl) >= 0:
		return reject(RejectCharset, "the id holds a control character")
	}
	return nil
}

func notScopeRune(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("._:@-", r)
}

// State says how far the work of a record has come. The zero value is not a
// valid state.
type State uint8

const (
	// Processing: an attempt has claimed the key and has not finished.
	Processing State = iota + 1
	// Completed: the work was done; Value answers repeats.
	Completed
	// Failed: the work failed for good; Error answers repeats.
	Failed
	// Interrupted: an attempt ended and nobody knows whether the work was done.
	Interrupted
)

// States lists every valid state in order.
func States() []State { return []State{Processing, Completed, Failed, Interrupted} }

// String returns the lower-case name, or "state(n)" for a value that is not one.
func (s State) String() string {
	switch s {
	case Processing:
		return "processing"
	case Completed:
		return "completed"
	case Failed:
		return "failed"
	case Interrupted:
		return "interrupted"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState reads the lower-case name of a state.
func ParseState(name string) (State, error) {
	for _, s := range States() {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("unknown state %q: one of processing, completed, failed, interrupted", name)
}

// Record is what a store holds for a key. A record handed to a store or got
// from one shares no memory with it: the caller may change its slices.
// All times are UTC with microsecond precision.
type Record struct {
	Key   Key
	State State
	// Version is assigned by the store on every write. It is greater than any
	// version this key ever had, across deletes and purges.
	Version uint64
	// Fingerprint identifies the content of the request. See Fingerprint.
	Fingerprint Fingerprint
	// Kind says what wrote the record: "func", "run", "http", … At most 32 bytes.
	Kind string
	// Owner identifies the attempt that holds or held the key. At most 256 bytes.
	Owner string
	// Attempt counts the runs of the function under this record, from 1.
	Attempt int
	// TraceID is the caller's trace id, if it gave one. At most 128 bytes.
	TraceID string

	CreatedAt time.Time // when the key was first claimed
	StartedAt time.Time // when the current or last attempt began
	UpdatedAt time.Time // when the record was last written
	// LeaseUntil is how long a Processing record is trusted without a sign of
	// life. Zero in every other state.
	LeaseUntil time.Time
	// ExpiresAt is when the record stops answering. Never zero.
	ExpiresAt time.Time

	// Steps are the finished steps of an attempt that has not ended, or was
	// interrupted: see Step. At most MaxSteps, and MaxStepBytes in all.
	Steps []StepResult
	// Resume says of an Interrupted record that the attempt ended with nothing left
	// open: the next call goes on after its last step, whatever the policy.
	Resume bool

	// Value is the result that repeats get. Nil and empty are told apart.
	Value []byte
	// ValueOmitted is the size in bytes of a value that was not kept because it
	// was too large or could not be encoded; 0 means that nothing was left out.
	ValueOmitted int64
	// Error is the message of a failure or what is known of an interruption.
	// At most 4 KiB; longer messages are cut.
	Error string
	// Note is what a person wrote when settling the record by hand. At most 1 KiB.
	Note string

	// Replays and LastReplayAt count the repeats this record has answered. They
	// are filled in on reading, best effort: a crash may lose the latest ones.
	Replays      uint64
	LastReplayAt time.Time
	// Mismatches counts repeats that came with other content, and
	// DistinctMismatches estimates how many different contents those were: one
	// key used for everything shows here. Filled in like Replays.
	Mismatches         uint64
	DistinctMismatches int
	// Size is the number of bytes the record takes in the store, filled in on
	// reading; 0 where a store cannot tell.
	Size int
}

// Expired reports whether the record has stopped answering at the given time of
// the store. A Processing record whose lease still runs never expires.
func (r *Record) Expired(now time.Time) bool {
	if r.State == Processing && now.Before(r.LeaseUntil) {
		return false
	}
	return !now.Before(r.ExpiresAt)
}

// Validate returns an error that matches ErrInvalidRecord or ErrInvalidKey and
// says why a store must refuse the record, or nil.
func (r *Record) Validate() error {
	if err := r.Key.Validate(); err != nil {
		return err
	}
	switch {
	case r.State < Processing || r.State > Interrupted:
		return r.invalid("it has %s", r.State)
	case r.ExpiresAt.IsZero():
		return r.invalid("it has no expiry")
	case outOfRange(r.ExpiresAt):
		return r.invalid("its expiry, %s, is not between 1970 and 9999", r.ExpiresAt.UTC())
	case r.State == Processing && r.LeaseUntil.IsZero():
		return r.invalid("it is processing without a lease")
	case !r.LeaseUntil.IsZero() && outOfRange(r.LeaseUntil):
		return r.invalid("the end of its lease, %s, is not between 1970 and 9999", r.LeaseUntil.UTC())
	case r.Attempt < 0:
		return r.invalid("its attempt number is negative")
	case len(r.Steps) > MaxSteps || stepBytes(r.Steps) > MaxStepBytes:
		return r.invalid("its %d steps have %d bytes, at most %d and %d are allowed", len(r.Steps), stepBytes(r.Steps), MaxSteps, MaxStepBytes)
	case r.Resume && r.State != Interrupted:
		return r.invalid("it is %s and waits to be resumed", r.State)
	case len(r.Value) > MaxValueBytes:
		return r.invalid("its value has %d bytes, at most %d are allowed", len(r.Value), MaxValueBytes)
	}
	for _, f := range []struct {
		name, text string
		limit      int
	}{
		{"kind", r.Kind, maxKindBytes},
		{"owner", r.Owner, maxOwnerBytes},
		{"trace id", r.TraceID, maxTraceBytes},
		{"error", r.Error, maxErrorBytes},
		{"note", r.Note, maxNoteBytes},
	} {
		if len(f.text) > f.limit {
			return r.invalid("its %s has %d bytes, at most %d are allowed", f.name, len(f.text), f.limit)
		}
	}
	return nil
}

// outOfRange: such a time cannot be kept in order, or looks like none.
func outOfRange(t time.Time) bool { return t.Year() < 1970 || t.Year() > 9999 || t.UnixMicro() <= 0 }

func (r *Record) invalid(format string, args ...any) error {
	return fmt.Errorf("%w: record of %q: "+format, append([]any{ErrInvalidRecord, r.Key.String()}, args...)...)
}
