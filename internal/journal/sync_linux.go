package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync is enough: the file has its final size and blocks before it is used.
func fdatasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
