package idem

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"

	berrors "go.etcd.io/bbolt/errors"
)

// guarded runs fn, which touches the memory-mapped file. A file that is cut
// short under the map raises a fault, and bbolt panics on pages it cannot make
// sense of; both become ErrCorrupt here instead of the end of the process.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // per goroutine, restored on return
	defer func() {
		if v := recover(); v != nil {
			err = &faultError{v}
		}
	}()
	return fn()
}

// faultError is a panic or memory fault while the file was used. It matches
// ErrCorrupt.
type faultError struct{ panicked any }

func (e *faultError) Error() string        { return fmt.Sprintf("%v: %v", ErrCorrupt, e.panicked) }
func (e *faultError) Is(target error) bool { return target == ErrCorrupt }

func isFault(err error) bool {
	var fault *faultError
	return errors.As(err, &fault)
}

// isNoSpace reports whether err means that the file could not grow or a write
// found no room. bbolt loses the errno of a failed resize, so its text decides.
func isNoSpace(err error) bool {
	for _, e := range noSpaceErrnos {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.Is(err, berrors.ErrMaxSizeReached) || strings.HasPrefix(err.Error(), "file resize error: ")
}

// openError gives bbolt's errors on opening their meaning here.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("open %s: %w: %w", path, ErrFormat, err)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum),
		strings.HasPrefix(err.Error(), "file size too small "): // bbolt has no name for it
		return fmt.Errorf("open %s: %w: %w", path, ErrCorrupt, err)
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Path == path {
		err = at.Err // which names the path already
	}
	return fmt.Errorf("open %s: %w", path, err)
}
