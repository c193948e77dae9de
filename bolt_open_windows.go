package idem

const openNoFollow = 0

// syncDir does nothing: Windows cannot sync a directory and NTFS journals names.
func syncDir(string) error { return nil }
