//go:build unix

package idem

import (
	"errors"
	"os"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"
)

// openNoFollow refuses a symbolic link that took the file's place after it was
// inspected.
const openNoFollow = syscall.O_NOFOLLOW

// tryLock takes bbolt's own lock of the file, and reports true, or returns
// bbolt's error for a file that is locked.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = berrors.ErrTimeout
	}
	return err == nil, err
}

// syncReadOnly syncs a file that is open for reading. Read-only file systems
// refuse that, and have nothing to sync.
func syncReadOnly(f *os.File) error {
	err := f.Sync()
	if errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EBADF) {
		return nil
	}
	return err
}

// abandon closes the file of a database that cannot be closed. Its memory map
// stays, and would keep the lock with it.
func abandon(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// syncDir makes a new name in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
