package idem

import (
	"os"
	"syscall"
)

const fallocKeepSize = 1 // FALLOC_FL_KEEP_SIZE

// preallocate sets disk blocks aside for a part of the file, without changing
// its size: bbolt keeps track of that itself.
func preallocate(f *os.File, offset, length int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), fallocKeepSize, offset, length)
		if err != syscall.EINTR { //nolint:errorlint // an errno
			return err
		}
	}
}
