package idem

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors of Do and of everything built on it.
var (
	// ErrInProgress is returned while another attempt holds the key. The error
	// is a *InProgressError.
	ErrInProgress = errors.New("in progress elsewhere")
	// ErrMismatch is returned when the key was used before with other content.
	// The error is a *MismatchError.
	ErrMismatch = errors.New("key was used with other content")
	// ErrInterrupted is returned when an attempt ended with its outcome unknown.
	// The error is a *InterruptedError.
	ErrInterrupted = errors.New("an earlier attempt was interrupted, its outcome is unknown")
	// ErrFailed is returned when a stored permanent failure is replayed. The
	// error is a *FailedError.
	ErrFailed = errors.New("failed before")
	// ErrNotRecorded is returned together with the function's result when the
	// result could not be written down. A repeat will not see it. The error is a
	// *NotRecordedError.
	ErrNotRecorded = errors.New("outcome was not recorded")
	// ErrLeaseLost is the cause of the function's context when another attempt
	// took the key over or the lease could not be renewed in time.
	ErrLeaseLost = errors.New("lease lost")
	// ErrValueNotKept is returned on a repeat when the work was done but its
	// value was too large, or could not be encoded, and was not stored.
	ErrValueNotKept = errors.New("done, but its result was not kept")
	// ErrUndecodable is returned on a repeat when the stored value does not fit
	// the type asked for. The work does not run again.
	ErrUndecodable = errors.New("stored result cannot be decoded")
	// ErrInvalidKey is returned for a key that breaks a rule. The error is a
	// *KeyError.
	ErrInvalidKey = errors.New("invalid key")
	// ErrInvalidInput is returned when the input cannot be fingerprinted.
	ErrInvalidInput = errors.New("invalid input")
	// ErrInvalidPolicy is returned for a policy that breaks a rule. The error is
	// a *PolicyError.
	ErrInvalidPolicy = errors.New("invalid policy")
	// ErrTxEnded is returned by a transaction whose function has returned.
	ErrTxEnded = errors.New("transaction has ended")
	// ErrNoTransactions is returned by DoTx for a store that has none.
	ErrNoTransactions = errors.New("store has no transactions")
)

// Errors of a Store.
var (
	// ErrNotFound is returned by Get and Delete when the key has no live record.
	ErrNotFound = errors.New("no record")
	// ErrConflict is returned by Create when the key has a live record, and by
	// Swap and Delete when its version is not the one given.
	ErrConflict = errors.New("record was changed by another attempt")
	// ErrInvalidRecord is returned by Create and Swap for a record that breaks a
	// limit. Nothing was written.
	ErrInvalidRecord = errors.New("invalid record")
	// ErrFull is returned by Create when the store has reached a limit of its
	// own, and by every write that finds the disk full. Repeats still work, and
	// so does removing records, a few at a time.
	ErrFull = errors.New("store is full")
	// ErrClosed is returned by every method after Close.
	ErrClosed = errors.New("store is closed")
	// ErrReadOnly is returned by writing methods of a store opened for reading.
	ErrReadOnly = errors.New("store is open for reading only")
	// ErrPoisoned is returned by every method after a write whose outcome is
	// unknown, or after the file was replaced. Opening again reads the truth.
	// The error is a *PoisonedError.
	ErrPoisoned = errors.New("store is poisoned")
	// ErrLocked is returned when the file is held by another process and the
	// time to wait for it is over. The error is a *LockedError.
	ErrLocked = errors.New("file is locked")
	// ErrCorrupt is returned when stored bytes are damaged. The file is kept as
	// it is. It never means "absent".
	ErrCorrupt = errors.New("stored data is damaged")
	// ErrJournal is returned on opening when the journal beside the file does not
	// belong to it or does not continue it: the file is an older copy. Both are
	// left as they are.
	ErrJournal = errors.New("the journal does not continue the file")
	// ErrFormat is returned when the file or a record was written in a format
	// that this build does not know.
	ErrFormat = errors.New("unknown format")
	// ErrNotIdem is returned when the path holds something that is not an idem
	// store. It is left untouched.
	ErrNotIdem = errors.New("not an idem store")
	// ErrInsecure is returned when the file can be read or written by other
	// users and the configuration asks to refuse that.
	ErrInsecure = errors.New("file is accessible to other users")
)

// RejectReason says why a key was refused. It is a small fixed set, so that
// refusals can be counted by reason.
type RejectReason string

// The reasons for which a key is refused.
const (
	RejectMissing RejectReason = "missing"
	RejectNoScope RejectReason = "no-scope"
	RejectTooLong RejectReason = "too-long"
	RejectCharset RejectReason = "charset"
	RejectFormat  RejectReason = "format" // it is not written as the caller asks for
)

// KeyError says which rule a key breaks. It matches ErrInvalidKey.
type KeyError struct {
	Key    Key
	Reason RejectReason
	Detail string
}

// Error says it in one line.
func (e *KeyError) Error() string { return "invalid key: " + e.Detail }

// Is reports whether target is ErrInvalidKey.
func (e *KeyError) Is(target error) bool { return target == ErrInvalidKey }

// PolicyError names the field of a Policy and the rule it breaks. It matches
// ErrInvalidPolicy.
type PolicyError struct {
	Field string
	Rule  string
}

// Error says it in one line.
func (e *PolicyError) Error() string { return "invalid policy: " + e.Field + " " + e.Rule }

// Is reports whether target is ErrInvalidPolicy.
func (e *PolicyError) Is(target error) bool { return target == ErrInvalidPolicy }

// InProgressError says that another attempt holds the key. It matches
// ErrInProgress.
type InProgressError struct {
	Record Record
	// RetryAfter is a hint: at least a second, at most half a minute.
	RetryAfter time.Duration
}

// Error says it in one line.
func (e *InProgressError) Error() string {
	return fmt.Sprintf("%q is in progress elsewhere, retry after %s", e.Record.Key.String(), e.RetryAfter)
}

// Is reports whether target is ErrInProgress.
func (e *InProgressError) Is(target error) bool { return target == ErrInProgress }

// MismatchError says that the key was used before with other content. It
// matches ErrMismatch. Its text names the parts that differ, never their
// content.
type MismatchError struct {
	Record Record
	// Parts are the names of the parts of the input that differ, sorted.
	Parts []string
}

// Error says it in one line.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%q was used with other content, different: %q", e.Record.Key.String(), e.Parts)
}

// Is reports whether target is ErrMismatch.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// InterruptedError says that an attempt ended with its outcome unknown: the
// process died, the function timed out, panicked or said so. It matches
// ErrInterrupted, and the error of the function if this call ran it.
type InterruptedError struct {
	Record Record
	// Cause is the function's error if this call ran the function, that of the
	// ReconcileFunc if it asked one, else nil.
	Cause error
}

// Error says it in one line.
func (e *InterruptedError) Error() string {
	msg := fmt.Sprintf("attempt %d of %q was interrupted, its outcome is unknown", e.Record.Attempt, e.Record.Key.String())
	switch {
	case e.Cause != nil:
		return msg + ": " + e.Cause.Error()
	case e.Record.Error != "":
		return msg + ": " + e.Record.Error
	}
	return msg
}

// Is reports whether target is ErrInterrupted.
func (e *InterruptedError) Is(target error) bool { return target == ErrInterrupted }

// Unwrap returns Cause.
func (e *InterruptedError) Unwrap() error { return e.Cause }

// FailedError replays a stored permanent failure. It matches ErrFailed.
type FailedError struct {
	Record Record
}

// Error says it in one line.
func (e *FailedError) Error() string {
	return fmt.Sprintf("%q failed before: %s", e.Record.Key.String(), e.Record.Error)
}

// Is reports whether target is ErrFailed.
func (e *FailedError) Is(target error) bool { return target == ErrFailed }

// NotRecordedError says that the function ran but its outcome could not be
// written down. The result that comes with it is real. It matches
// ErrNotRecorded, the store's error and the function's error.
type NotRecordedError struct {
	Key   Key
	Store error // why the write failed
	Func  error // what the function returned, or nil
}

// Error says it in one line.
func (e *NotRecordedError) Error() string {
	msg := fmt.Sprintf("outcome of %q was not recorded: %v", e.Key.String(), e.Store)
	if e.Func != nil {
		return msg + "; the function returned: " + e.Func.Error()
	}
	return msg
}

// Is reports whether target is ErrNotRecorded.
func (e *NotRecordedError) Is(target error) bool { return target == ErrNotRecorded }

// Unwrap returns the store's and the function's error.
func (e *NotRecordedError) Unwrap() []error {
	if e.Func == nil {
		return []error{e.Store}
	}
	return []error{e.Store, e.Func}
}

// LockedError names the process that holds the file. It matches ErrLocked.
type LockedError struct {
	Path    string
	PID     int    // 0 if it cannot be known
	Command string // short name of that process, "" if it cannot be known
}

// Error says it in one line.
func (e *LockedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is locked", e.Path)
	if e.PID != 0 {
		fmt.Fprintf(&b, " by pid %d", e.PID)
		if e.Command != "" {
			fmt.Fprintf(&b, " (%s)", e.Command)
		}
	} else {
		b.WriteString(" by another process")
	}
	return b.String()
}

// Is reports whether target is ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// PoisonedError says what made the store refuse all further work. It matches
// ErrPoisoned and the cause.
type PoisonedError struct {
	Path  string
	Cause error
}

// Error says it in one line.
func (e *PoisonedError) Error() string {
	return fmt.Sprintf("%s is poisoned, open it again to go on: %v", e.Path, e.Cause)
}

// Is reports whether target is ErrPoisoned.
func (e *PoisonedError) Is(target error) bool { return target == ErrPoisoned }

// Unwrap returns the cause.
func (e *PoisonedError) Unwrap() error { return e.Cause }
