package idem

import (
	"fmt"
	"time"
)

// EventKind says what happened to a call. The zero value is not valid.
type EventKind uint8

const (
	// EventExecuted: the function ran and its result was recorded.
	EventExecuted EventKind = iota + 1
	// EventReplayed: a finished record answered the call.
	EventReplayed
	// EventInProgress: the call was turned away because another attempt holds
	// the key.
	EventInProgress
	// EventMismatch: the key was used before with other content.
	EventMismatch
	// EventInterrupted: the call found an attempt of unknown outcome, or left
	// one.
	EventInterrupted
	// EventReleased: the function failed, nothing happened, the key is free.
	EventReleased
	// EventFailed: the function failed for good and the failure was recorded.
	EventFailed
	// EventExpired: Count records were removed because their time was over.
	EventExpired
	// EventLeaseLost: the attempt lost its key while the function ran.
	EventLeaseLost
	// EventRejected: the key was refused, for Reason.
	EventRejected
	// EventStoreError: the store failed with Err. The call failed with it.
	EventStoreError
	// EventUnprotected: work was done without a key, or while the store could not
	// be used, because the caller asked for that.
	EventUnprotected

	eventKinds = int(EventUnprotected)
)

var eventNames = [...]string{
	EventExecuted: "executed", EventReplayed: "replayed", EventInProgress: "in-progress",
	EventMismatch: "mismatch", EventInterrupted: "interrupted", EventReleased: "released",
	EventFailed: "failed", EventExpired: "expired", EventLeaseLost: "lease-lost",
	EventRejected: "rejected", EventStoreError: "store-error",
	EventUnprotected: "unprotected",
}

// EventKinds lists every valid kind in order.
func EventKinds() []EventKind {
	kinds := make([]EventKind, eventKinds)
	for i := range kinds {
		kinds[i] = EventKind(i + 1)
	}
	return kinds
}

// String returns the name, for instance "executed", or "event(n)" for a value
// that is not a kind.
func (k EventKind) String() string {
	if k == 0 || int(k) > eventKinds {
		return fmt.Sprintf("event(%d)", uint8(k))
	}
	return eventNames[k]
}

// Event tells an observer what happened to one call.
type Event struct {
	Kind EventKind
	// Key is zero for EventExpired.
	Key Key
	// Version and Attempt are those of the record, 0 where there is none.
	Version uint64
	Attempt int
	// TraceID is the one of the call.
	TraceID string
	// RecordKind is Record.Kind.
	RecordKind string
	// Ran is how long the function ran, 0 if it did not.
	Ran time.Duration
	// Waited is how long the call waited for another attempt.
	Waited time.Duration
	// Count is the number of records for EventExpired, else 0.
	Count int
	// Reason is set for EventRejected.
	Reason RejectReason
	// Parts names the differing parts for EventMismatch.
	Parts []string
	// Fingerprint is the call's own one, for EventMismatch.
	Fingerprint Fingerprint
	// Err is the error of the call, nil where it succeeded.
	Err error
}

// Observer receives events. It is called synchronously by the goroutine the
// event happened on, so it must be quick, safe for concurrent use, and must not
// call the guard. It must not change Parts.
type Observer func(Event)
