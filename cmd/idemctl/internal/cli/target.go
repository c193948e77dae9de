package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// target is where a path leads to when links are followed.
type target struct {
	path string
	info fs.FileInfo // nil if there is nothing
}

// maxLinks bounds a chain of links, as the system does.
const maxLinks = 40

// followLinks finds the file that writing to path would write to, which need not
// exist. Only of a file that can be replaced the name is followed: that of a pipe
// behind /dev/fd is none that could be opened.
func followLinks(path string) (target, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return target{path, info}, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return target{}, err
	}
	path, absErr := filepath.Abs(path)
	if absErr != nil {
		return target{}, absErr
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
		return target{path, info}, err
	}
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			return target{}, fmt.Errorf("there is no directory %s", filepath.Dir(path))
		}
		if err != nil {
			return target{}, err
		}
		path = filepath.Join(dir, filepath.Base(path))
		to, err := os.Readlink(path)
		if err != nil { // nothing, so no link either
			return target{path: path}, nil
		}
		if path = to; !filepath.IsAbs(to) {
			path = filepath.Join(dir, to)
		}
	}
	return target{}, fmt.Errorf("too many links: %s", path)
}

// streams reports whether it is a pipe or a device that takes characters, which
// is written to and not replaced.
func (t target) streams() bool {
	return t.info != nil && t.info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0
}

// is reports whether path leads to the same file, which may be one that is still
// to be made.
func (t target) is(path string) bool {
	other, err := followLinks(path)
	if err != nil {
		return false
	}
	return t.path == other.path || t.info != nil && other.info != nil && os.SameFile(t.info, other.info)
}
