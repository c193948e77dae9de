package idem

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// killedFile is the file that a service leaves which is killed: its freelist is
// not stored, so that bbolt walks all pages when it is opened.
func killedFile(t *testing.T) (path string, image []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "killed.db")
	s := openFault(t, path, BoltConfig{})
	for i := range 120 {
		_, err := s.Create(t.Context(), completed(fmt.Sprint(i), faultValue(i, 200)))
		require.NoError(t, err)
	}
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return path, image
}

// TestKilledAndDamaged injects a zeroed or filled page, each page in turn, and a
// cut at each page, into the file of a killed service. Opening must succeed or
// say that it is damaged: in bbolt it ends the process.
func TestKilledAndDamaged(t *testing.T) {
	t.Parallel()
	_, image := killedFile(t)
	pageSize := os.Getpagesize()
	refused := 0
	open := func(image []byte, what string) {
		path := filepath.Join(t.TempDir(), "damaged.db")
		require.NoError(t, os.WriteFile(path, image, 0o600))
		s, err := OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: -1})
		if err == nil {
			require.NoError(t, s.Close(), what)
			return
		}
		refused++
		require.ErrorIs(t, err, ErrCorrupt, what)
		// Nothing may keep the file: a backup put back in its place opens.
		require.NoError(t, os.WriteFile(path, clean(t), 0o600))
		s, err = OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: -1})
		require.NoError(t, err, what)
		require.NoError(t, s.Close())
	}
	for page := 2; page < min(len(image)/pageSize, 40); page++ {
		for _, fill := range []byte{0, 0xFF} {
			damaged := append([]byte(nil), image...)
			for i := range pageSize {
				damaged[page*pageSize+i] = fill
			}
			open(damaged, fmt.Sprintf("page %d filled with %#x", page, fill))
		}
		open(image[:page*pageSize], fmt.Sprintf("cut at page %d", page))
	}
	require.Greater(t, refused, 20)
}

// clean is the image of a store that was closed.
func clean(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clean.db")
	require.NoError(t, openFault(t, path, BoltConfig{}).Close())
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	return image
}

// TestCheckInUse checks a store while it is written to: no false findings, and
// neither side may be disturbed.
func TestCheckInUse(t *testing.T) {
	t.Parallel()
	s := openFault(t, filepath.Join(t.TempDir(), "idem.db"), BoltConfig{})
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			rec, err := s.Create(t.Context(), completed(fmt.Sprint(i), faultValue(i, 3000)))
			if err == nil && i%2 == 0 {
				err = s.Delete(t.Context(), rec.Key, rec.Version)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 200 {
		report, err := s.Check(t.Context())
		require.NoError(t, err)
		require.Zero(t, report.Problems, "%+v", report.Findings)
	}
	close(stop)
	require.NoError(t, <-ended)
	require.NoError(t, s.Close())
}

// TestDiscard is the way out for a key whose record is damaged.
func TestDiscard(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	s := openFault(t, path, BoltConfig{})
	rec, err := s.Create(t.Context(), completed("k", "v"))
	require.NoError(t, err)
	require.ErrorIs(t, s.Discard(t.Context(), rec.Key), ErrConflict, "it can be read")
	require.ErrorIs(t, s.Discard(t.Context(), faultKey("none")), ErrNotFound)
	require.NoError(t, s.Close())
	for _, spoil := range []func([]byte) []byte{
		func(enc []byte) []byte { enc[len(enc)-1] ^= 1; return enc },
		func(enc []byte) []byte { enc[20] ^= 1; return enc }, // its expiry
		func(enc []byte) []byte { return enc[:3] },
	} {
		damage(t, path, "k", spoil)
		s = openFault(t, path, BoltConfig{})
		_, err = s.Create(t.Context(), completed("k", "again"))
		require.ErrorIs(t, err, ErrCorrupt)
		require.NoError(t, s.Discard(t.Context(), rec.Key))
		again, err := s.Create(t.Context(), completed("k", "again"))
		require.NoError(t, err)
		require.Greater(t, again.Version, rec.Version)
		require.NoError(t, s.Close())
		s = openFault(t, path, BoltConfig{})
		report, err := s.Check(t.Context())
		require.NoError(t, err)
		for _, finding := range report.Findings { // bytes of a record changed behind the store's back are off its books
			require.Equal(t, CheckTotals, finding.Area, finding)
		}
		require.NoError(t, s.Close())
	}
}
