// Package fileid tells whether a path still names the file that a process has
// open, cheaply enough to ask before every write.
//
// The obvious way, os.Lstat and os.SameFile, also asks for the file's times. On
// Linux from 6.13 on a file system then gives the next write a time of its own,
// which goes into its journal with the next sync: a fdatasync of one sector took
// 40 % longer. So where it can be said what is asked for, only the identity is.
package fileid

import "os"

// File identifies a file, whatever its names.
type File struct {
	// Size is its length in bytes when it was looked at.
	Size int64
	id   id
	info os.FileInfo // where there is no id
}

// Same reports whether both are the same file.
func (f File) Same(other File) bool {
	if f.info != nil || other.info != nil {
		return os.SameFile(f.info, other.info)
	}
	return f.id == other.id
}

func of(info os.FileInfo, err error) (File, error) {
	if err != nil {
		return File{}, err
	}
	return File{Size: info.Size(), info: info}, nil
}
