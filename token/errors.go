package token

import (
	"errors"
	"time"
)

// Errors of Consume. None of them consumes the token.
var (
	// ErrUsed is returned when the token was consumed before. The error is a
	// *UsedError.
	ErrUsed = errors.New("token was used before")
	// ErrUnknown is returned for a token that was never issued in this scope, or
	// so long ago that it was forgotten. Inspect returns it too.
	ErrUnknown = errors.New("unknown token")
	// ErrExpired is returned when the token was not consumed in time.
	ErrExpired = errors.New("token has expired")
	// ErrSubject is returned when the token was issued to another subject,
	// whatever else there is to say about it.
	ErrSubject = errors.New("token belongs to another subject")
)

// UsedError says that a token was consumed before. It matches ErrUsed.
type UsedError struct {
	At time.Time // when it was consumed
}

// Error says it in one line.
func (e *UsedError) Error() string { return "token was used at " + e.At.Format(time.RFC3339) }

// Is reports whether target is ErrUsed.
func (e *UsedError) Is(target error) bool { return target == ErrUsed }
