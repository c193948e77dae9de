package fileid

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

type id struct {
	major, minor uint32
	inode        uint64
}

// Open identifies an open file.
func Open(f *os.File) (File, error) {
	return stat(int(f.Fd()), "", unix.AT_EMPTY_PATH, f.Name(), f.Stat)
}

// At identifies the file at path, a symbolic link as itself.
func At(path string) (File, error) {
	return stat(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, path, func() (os.FileInfo, error) { return os.Lstat(path) })
}

func stat(dir int, path string, flags int, name string, otherwise func() (os.FileInfo, error)) (File, error) {
	var st unix.Statx_t
	err := unix.Statx(dir, path, flags, unix.STATX_INO|unix.STATX_SIZE, &st)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a sandbox that does not know it
		return of(otherwise())
	}
	if err != nil {
		return File{}, &fs.PathError{Op: "statx", Path: name, Err: err}
	}
	return File{Size: int64(st.Size), id: id{st.Dev_major, st.Dev_minor, st.Ino}}, nil
}
