package idem

import (
	"context"
	"errors"
	"net"
)

// Outcome is what a function's error says about the work.
type Outcome uint8

const (
	// OutcomeNothing: nothing happened, a repeat may run. The key is released.
	OutcomeNothing Outcome = iota + 1
	// OutcomePermanent: the work failed for good. The failure is stored.
	OutcomePermanent
	// OutcomeUnknown: nobody knows whether the work was done. The record is kept
	// as Interrupted.
	OutcomeUnknown
)

// Classifier turns a function's non-nil error into an outcome. Panics and lost
// leases are always OutcomeUnknown and do not reach it.
type Classifier func(err error) Outcome

// Classify is the default Classifier: Permanent and Unknown mean what they say,
// an ended context or a network timeout is unknown, and any other error means
// that nothing happened. Replace it with WithClassifier for functions whose
// plain errors leave the outcome open.
func Classify(err error) Outcome {
	var marked *markedError
	if errors.As(err, &marked) {
		return marked.outcome
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return OutcomeUnknown
	}
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return OutcomeUnknown
	}
	return OutcomeNothing
}

// Permanent marks err as a failure that a retry cannot change: a declined card,
// an invalid address. It is stored, together with the value returned beside it,
// and replayed as *FailedError. Permanent(nil) is nil.
func Permanent(err error) error { return mark(err, OutcomePermanent) }

// Unknown marks err as an end whose outcome nobody knows: the request was sent
// and no answer came. Unknown(nil) is nil.
func Unknown(err error) error { return mark(err, OutcomeUnknown) }

func mark(err error, o Outcome) error {
	if err == nil {
		return nil
	}
	return &markedError{err: err, outcome: o}
}

type markedError struct {
	err     error
	outcome Outcome
}

func (e *markedError) Error() string { return e.err.Error() }
func (e *markedError) Unwrap() error { return e.err }
