package lock

import (
	"errors"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

var (
	// ErrHeld is returned by TryLock when somebody else holds the lock, and by
	// Lock when its context has ended meanwhile. The error is a *HeldError.
	ErrHeld = errors.New("lock is held elsewhere")
	// ErrLost is returned by Held.Err and Unlock when the lock was not held to the
	// end. The error also matches idem.ErrLeaseLost.
	ErrLost = errors.New("lock was lost")
	// ErrReleased is returned by Held.Err after Unlock.
	ErrReleased = errors.New("lock was released")
)

// HeldError says who holds a lock. It matches ErrHeld, the *idem.InProgressError,
// and the error of the context if that ended the waiting.
type HeldError struct {
	Name string
	// Record is that of the holder: Owner is its process or opening of the file,
	// StartedAt when it took the lock, LeaseUntil until when it holds it if it
	// gives no further sign of life.
	Record idem.Record
	// RetryAfter is a hint: at least a second, at most half a minute.
	RetryAfter time.Duration
	// Waited is the error of the context that ended while Lock waited, else nil.
	Waited error
}

// Error says it in one line.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("lock %q is held since %s by %s", e.Name, e.Record.StartedAt.Format(time.RFC3339), e.Record.Owner)
	if e.Waited != nil {
		text += ": waiting ended: " + e.Waited.Error()
	}
	return text
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Unwrap returns the *idem.InProgressError and Waited.
func (e *HeldError) Unwrap() []error {
	errs := []error{&idem.InProgressError{Record: e.Record, RetryAfter: e.RetryAfter}}
	if e.Waited != nil {
		errs = append(errs, e.Waited)
	}
	return errs
}
