package fileid

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString("four")
	require.NoError(t, err)
	opened, err := Open(f)
	require.NoError(t, err)
	require.EqualValues(t, 4, opened.Size)

	at := func(path string) File {
		t.Helper()
		file, err := At(path)
		require.NoError(t, err)
		return file
	}
	require.True(t, opened.Same(at(path)))
	require.NoError(t, os.Rename(path, other))
	require.True(t, opened.Same(at(other)), "its name does not matter")
	_, err = At(path)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, os.Symlink(other, path))
	require.False(t, opened.Same(at(path)), "a link is another file")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, []byte("four"), 0o600))
	require.False(t, opened.Same(at(path)))
}

// TestWithoutIdentity is what is left where only os.Lstat can be asked.
func TestWithoutIdentity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := of(os.Lstat(dir))
	require.NoError(t, err)
	b, err := of(os.Lstat(dir))
	require.NoError(t, err)
	require.True(t, a.Same(b))
	b, err = of(os.Lstat(filepath.Dir(dir)))
	require.NoError(t, err)
	require.False(t, a.Same(b))
}
