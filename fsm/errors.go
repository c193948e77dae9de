package fsm

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of New.
var (
	// ErrInvalidDefinition is returned by New for a definition that breaks a rule.
	// The error has a line for everything that is wrong.
	ErrInvalidDefinition = errors.New("invalid definition")
)

// Errors of Start, Get and Fire. They also return *idem.KeyError for a bad id,
// idem.ErrNotFound, and the store's errors.
var (
	// ErrIllegal is returned by Fire for a transition that is not declared. The
	// error is a *IllegalError.
	ErrIllegal = errors.New("illegal transition")
	// ErrUnknownState is returned by Fire for a state that is not declared.
	ErrUnknownState = errors.New("unknown state")
	// ErrPayloadTooLarge is returned by Fire for a payload of more than
	// MaxPayloadBytes.
	ErrPayloadTooLarge = errors.New("payload is too large")
	// ErrDefinitionChanged is returned when an instance is in a state that the
	// definition does not know any more. The error is a *DefinitionError.
	ErrDefinitionChanged = errors.New("the definition does not know the stored state")
	// ErrForeign is returned when something else is stored under the key: the
	// scope is used by something else too.
	ErrForeign = errors.New("not a record of a state machine")
)

// IllegalError says that a transition is not declared. Nothing was written. It
// matches ErrIllegal.
type IllegalError struct {
	From, To string
	// Allowed are the states that can follow From, as they are declared. It is
	// empty if From is final.
	Allowed []string
	// Instance is the one that was found.
	Instance Instance
}

// Error says it in one line.
func (e *IllegalError) Error() string {
	if len(e.Allowed) == 0 {
		return fmt.Sprintf("illegal transition: it is %s, which is final", e.From)
	}
	return fmt.Sprintf("illegal transition: it is %s, only %s can follow", e.From, strings.Join(e.Allowed, " or "))
}

// Is reports whether target is ErrIllegal.
func (e *IllegalError) Is(target error) bool { return target == ErrIllegal }

// DefinitionError says that an instance is in a state that the definition does
// not know: the program has another definition than the one that wrote it. It
// matches ErrDefinitionChanged.
type DefinitionError struct {
	State string // that is stored
	// Stored and Current are the versions of the definition that wrote the
	// instance and of the machine that read it. See Machine.Version.
	Stored, Current string
}

// Error says it in one line.
func (e *DefinitionError) Error() string {
	return fmt.Sprintf("it is in state %q, written by definition %q, which definition %q does not know", e.State, e.Stored, e.Current)
}

// Is reports whether target is ErrDefinitionChanged.
func (e *DefinitionError) Is(target error) bool { return target == ErrDefinitionChanged }
