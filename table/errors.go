package table

import (
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// Errors of a Table. Its methods also return *idem.KeyError for a bad id,
// idem.ErrNotFound for a row that is not there, idem.ErrUndecodable for one whose
// value does not fit the table's type, and the store's errors.
var (
	// ErrDuplicate is returned when another row has the value of the unique
	// column. The error is a *DuplicateError.
	ErrDuplicate = errors.New("value is taken by another row")
	// ErrInvalidValue is returned for a value that can not be stored: it can not be
	// encoded as JSON, can not be read back, or is larger than MaxValueBytes.
	ErrInvalidValue = errors.New("invalid value")
	// ErrForeign is returned when something else is stored under a key of the
	// table: the scope is used by something else too.
	ErrForeign = errors.New("not a record of a table")
)

// DuplicateError says that another row has the value of the unique column.
// Nothing was written. It matches ErrDuplicate.
type DuplicateError[T any] struct {
	// Column is the name that WithUnique gave it.
	Column string
	// Row is the one that has the value.
	Row Row[T]
}

// Error says it in one line, without the value.
func (e *DuplicateError[T]) Error() string {
	return fmt.Sprintf("its %s is taken by row %q", e.Column, e.Row.ID)
}

// Is reports whether target is ErrDuplicate.
func (e *DuplicateError[T]) Is(target error) bool { return target == ErrDuplicate }

// ConflictError says that the row is not at the version that was given: it was
// changed since it was read. Nothing was written. It matches idem.ErrConflict.
type ConflictError[T any] struct {
	// Version is the one that was given.
	Version uint64
	// Row is as it is now.
	Row Row[T]
}

// Error says it in one line.
func (e *ConflictError[T]) Error() string {
	return fmt.Sprintf("it was changed: version %d was given, it is at %d", e.Version, e.Row.Version)
}

// Is reports whether target is idem.ErrConflict.
func (e *ConflictError[T]) Is(target error) bool { return target == idem.ErrConflict }
