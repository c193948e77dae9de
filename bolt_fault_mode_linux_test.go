package idem

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForeignPath puts things at the path that are not files: the same must
// hold, and a symbolic link must not be followed.
func TestForeignPath(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		mode fs.FileMode // type of what is there, before and after
	}{
		{"directory", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, fs.ModeDir},
		{"symbolic link to a store", func(t *testing.T, path string) {
			require.NoError(t, os.Symlink(faultFile(t, 1, 10), path))
		}, fs.ModeSymlink},
		{"symbolic link to nothing", func(t *testing.T, path string) {
			require.NoError(t, os.Symlink(path+".gone", path))
		}, fs.ModeSymlink},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			tt.make(t, path)
			requireForeign(t, path, tt.mode)
			names, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Len(t, names, 1)
		})
	}
}

func requireForeign(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	for _, c := range openings() {
		_, err := OpenBoltStore(t.Context(), path, c)
		require.ErrorIs(t, err, ErrNotIdem)
		require.ErrorContains(t, err, path)
	}
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, mode, info.Mode().Type())
}

// TestDevices puts a FIFO, which an open would wait on, a device and a socket at
// the path: ErrNotIdem at once.
func TestDevices(t *testing.T) {
	t.Parallel()
	fifo := faultPath(t)
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	requireForeign(t, fifo, fs.ModeNamedPipe)
	requireForeign(t, "/dev/null", fs.ModeDevice|fs.ModeCharDevice)

	socket := faultPath(t)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer syscall.Close(fd)
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: socket}))
	requireForeign(t, socket, fs.ModeSocket)
}

// TestWideMode gives the file modes that let others in: Info must warn, and
// RequirePrivate must refuse and leave the file as it is. A new file must be
// private whatever the umask.
func TestWideMode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode fs.FileMode
		wide bool
	}{
		{0o600, false}, {0o400, false}, {0o640, true}, {0o604, true}, {0o660, true}, {0o602, true}, {0o666, true}, {0o777, true},
	}
	for _, tt := range tests {
		t.Run(tt.mode.String(), func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			created := openFault(t, path, BoltConfig{})
			info, err := created.Info(t.Context())
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode)
			require.Empty(t, info.Warnings)
			require.NoError(t, created.Close())

			require.NoError(t, os.Chmod(path, tt.mode))
			s, err := OpenBoltStore(t.Context(), path, BoltConfig{ReadOnly: true, RequirePrivate: true})
			if tt.wide {
				require.ErrorIs(t, err, ErrInsecure)
				require.ErrorContains(t, err, path)
			} else {
				require.NoError(t, err)
				require.NoError(t, s.Close())
			}
			s = openFault(t, path, BoltConfig{ReadOnly: true, LockTimeout: -1}) // a refused open has let go
			info, err = s.Info(t.Context())
			require.NoError(t, err)
			require.Equal(t, tt.mode, info.Mode)
			require.Equal(t, tt.wide, len(info.Warnings) == 1, "%q", info.Warnings)
			require.NoError(t, s.Close())
			stat, err := os.Lstat(path)
			require.NoError(t, err)
			require.Equal(t, tt.mode, stat.Mode().Perm(), "the mode is the administrator's")
		})
	}
}
