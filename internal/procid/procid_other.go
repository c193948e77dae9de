//go:build !linux

package procid

import (
	"errors"
	"fmt"
)

// Of is not supported on this system: it returns an error that wraps
// [errors.ErrUnsupported].
func Of(pid int) (ID, error) {
	return ID{}, fmt.Errorf("identify process %d: %w", pid, errors.ErrUnsupported)
}

func probe(ID) Liveness { return Unknown }
