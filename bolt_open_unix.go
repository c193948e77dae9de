//go:build unix

package idem

import (
	"errors"
	"os"
	"syscall"
)

// openNoFollow refuses a symbolic link that took the file's place after it was
// inspected.
const openNoFollow = syscall.O_NOFOLLOW

// syncDir makes a new name in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
