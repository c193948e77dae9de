package outbox

import "errors"

var (
	// ErrInvalidEvent is returned by Append for an event that breaks a limit. The
	// transaction must not be committed, so its function must return the error.
	ErrInvalidEvent = errors.New("invalid event")
	// ErrInvalidConfig is returned by New and NewRelay for an option or argument
	// that cannot be.
	ErrInvalidConfig = errors.New("invalid configuration")
	// ErrRunning is returned by Run while another relay works on the outbox.
	ErrRunning = errors.New("another relay runs on this outbox")
	// ErrAbandoned is returned by Run when a publisher did not return although its
	// context had ended. It may still publish its event, which the next relay
	// publishes too.
	ErrAbandoned = errors.New("a publisher did not return")
	// ErrNotParked is returned by Retry and Drop when no parked event has the id.
	ErrNotParked = errors.New("no parked event has this id")
)

// Unavailable marks a publisher's error as one that is not the event's fault: the
// broker cannot be reached. The attempt does not count towards WithMaxAttempts, so
// an outage parks nothing. Unavailable(nil) is nil.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &unavailableError{err}
}

type unavailableError struct{ err error }

func (e *unavailableError) Error() string { return e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }
