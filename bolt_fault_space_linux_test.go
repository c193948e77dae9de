package idem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stretchr/testify/require"
)

// fillUp creates records until the store is full and returns how many it took.
// Between them lie as many that have expired.
func fillUp(t *testing.T, s *BoltStore, valueBytes int) (records int) {
	t.Helper()
	for {
		rec, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", records), faultValue(records, valueBytes)))
		if err != nil {
			require.ErrorIs(t, err, ErrFull)
			require.Equal(t, Record{}, rec)
			return records
		}
		expired := completed(fmt.Sprintf("k%d-old", records), faultValue(records, valueBytes))
		expired.ExpiresAt = expired.CreatedAt
		if _, err := s.Create(t.Context(), expired); err != nil {
			require.ErrorIs(t, err, ErrFull)
			return records + 1
		}
		records++
		require.Less(t, records, 10_000, "the limit does not bite")
	}
}

// requireAll requires that the records of fillUp are there, from the cache and
// from the file.
func requireAll(t *testing.T, s *BoltStore, from, to, valueBytes int) {
	t.Helper()
	for i := from; i < to; i++ {
		rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("k%d", i)))
		require.NoError(t, err, i)
		require.Equal(t, faultValue(i, valueBytes), string(rec.Value))
		s.cache.write(rec.Key) // out of the cache
		s.cache.wrote(rec.Key, nil)
		rec, err = s.Get(t.Context(), rec.Key)
		require.NoError(t, err, i)
		require.Equal(t, faultValue(i, valueBytes), string(rec.Value))
	}
}

// TestFileCannotGrow injects a file size limit, so that ftruncate fails when
// bbolt wants to grow the file. New keys are ErrFull, repeats and deletes work,
// the space of deleted records is used again, and with the limit gone the store
// goes on.
func TestFileCannotGrow(t *testing.T) {
	if !isFaultChild(t) {
		t.Parallel()
		runFaultChild(t)
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	path := filepath.Join(t.TempDir(), "idem.db")
	s := openFault(t, path, BoltConfig{})
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 2<<20 + 4096, Max: old.Max}))
	full := fillUp(t, s, 2000)
	require.Greater(t, full, 100)
	_, err := s.Create(t.Context(), completed("more", faultValue(0, 100_000)))
	require.ErrorIs(t, err, ErrFull)
	require.ErrorContains(t, err, "file too large", "the cause is named")
	fmt.Println(faultInjected)

	fullStore(t, s, full, 2000)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old))
	_, err = s.Create(t.Context(), completed("more", faultValue(0, 100_000)))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// fullStore requires what a store with a full disk must still do.
func fullStore(t *testing.T, s *BoltStore, records, valueBytes int) {
	t.Helper()
	requireAll(t, s, 0, records, valueBytes)
	g, err := New(s)
	require.NoError(t, err)
	ran := false
	_, err = Do(t.Context(), g, faultKey("new"), nil, func(context.Context, *Attempt) ([]byte, error) {
		ran = true
		return make([]byte, 1<<20), nil
	})
	// Its claim is small and may have found a free page. Its value has not.
	require.ErrorIs(t, err, ErrFull)
	require.Equal(t, ran, errors.Is(err, ErrNotRecorded))
	res, err := Do(t.Context(), g, faultKey("k0"), nil, func(context.Context, *Attempt) ([]byte, error) {
		t.Error("a repeat ran")
		return nil, nil
	})
	require.NoError(t, err)
	require.Equal(t, faultValue(0, valueBytes), string(res.Value))

	purged := records / 2
	purge(t, s, purged)
	for i := range purged / 2 { // in the space of the deleted ones
		_, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", i), faultValue(i, valueBytes)))
		require.NoError(t, err)
	}
	requireAll(t, s, 0, purged/2, valueBytes)
	requireAll(t, s, purged, records, valueBytes)
}

// TestDiskFull injects a file system of 1 MiB that runs full: ftruncate succeeds
// there, since the file is sparse, and pwrite fails. The same must hold as for a
// file that cannot grow, and all acknowledged records must survive a restart.
func TestDiskFull(t *testing.T) {
	if isFaultChild(t) {
		diskFull(t, BoltConfig{})
		return
	}
	t.Parallel()
	runDiskFull(t)
}

// TestDiskFullWithJournal is the same with a journal on that file system.
func TestDiskFullWithJournal(t *testing.T) {
	if isFaultChild(t) {
		diskFull(t, WithJournal(BoltConfig{}))
		return
	}
	t.Parallel()
	runDiskFull(t)
}

func runDiskFull(t *testing.T) {
	t.Helper()
	cmd := faultChild(t, "IDEM_FAULT_PATH="+t.TempDir())
	inMountNamespace(cmd)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "a private mount of a tmpfs is needed: %s", out)
	require.Contains(t, string(out), faultInjected)
}

// inMountNamespace lets the command mount file systems that only it sees.
func inMountNamespace(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
}

func diskFull(t *testing.T, c BoltConfig) {
	dir := os.Getenv("IDEM_FAULT_PATH")
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"))
	path := filepath.Join(dir, "idem.db")
	s := openFault(t, path, c)
	full := fillUp(t, s, 2000)
	require.Greater(t, full, 30)
	_, err := s.Create(t.Context(), completed("more", faultValue(0, 50_000)))
	require.ErrorIs(t, err, ErrFull)
	require.ErrorIs(t, err, unix.ENOSPC)
	fmt.Println(faultInjected)
	requireAll(t, s, 0, full, 2000)

	_ = s.Close() // may fail to write the freelist, but must let go of the file
	c.LockTimeout = -1
	s = openFault(t, path, c)
	requireAll(t, s, 0, full, 2000)
	expired, err := s.Expire(t.Context(), 10_000) // in one commit it would need more pages than are free
	require.NoError(t, err)
	require.GreaterOrEqual(t, expired, full-1)
	purge(t, s, full/2)
	for i := range full / 4 {
		_, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", i), faultValue(i, 2000)))
		require.NoError(t, err, "writes must resume in freed space")
	}
	requireAll(t, s, 0, full/4, 2000)
	requireAll(t, s, full/2, full, 2000)

	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size=4m"))
	_, err = s.Create(t.Context(), completed("more", faultValue(0, 500_000)))
	require.NoError(t, err, "writes must resume when there is space again")
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// purge deletes the first n records. A delete takes free pages before it gives
// any, so on a full disk one may be refused until others have made room.
func purge(t *testing.T, s *BoltStore, n int) {
	t.Helper()
	for pass := 1; ; pass++ {
		refused := 0
		for i := range n {
			rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("k%d", i)))
			if errors.Is(err, ErrNotFound) && pass > 1 {
				continue
			}
			require.NoError(t, err)
			if err := s.Delete(t.Context(), rec.Key, rec.Version); err != nil {
				require.ErrorIs(t, err, ErrFull)
				refused++
			}
		}
		if refused == 0 {
			return
		}
		require.Less(t, refused, n/pass, "deletes must make room while the disk is full")
	}
}
