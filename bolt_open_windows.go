package idem

import "os"

const openNoFollow = 0

// tryLock leaves the locking to bbolt: a second lock on one handle would fail.
func tryLock(*os.File) (bool, error) { return false, nil }

// syncReadOnly does nothing: Windows syncs only what is open for writing.
func syncReadOnly(*os.File) error { return nil }

// abandon closes the file of a database that cannot be closed.
func abandon(f *os.File) error { return f.Close() }

// syncDir does nothing: Windows cannot sync a directory and NTFS journals names.
func syncDir(string) error { return nil }
