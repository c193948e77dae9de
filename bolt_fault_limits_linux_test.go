package idem

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stretchr/testify/require"
)

// mapped is the size of this process's address space.
func mapped(t *testing.T) uint64 {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.ParseUint(strings.Fields(string(statm))[0], 10, 64)
	require.NoError(t, err)
	return pages * uint64(os.Getpagesize())
}

// limit sets a limit of this process and returns a function that lifts it.
func limit(t *testing.T, what int, n uint64) (lift func()) {
	t.Helper()
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(what, &old))
	require.NoError(t, unix.Setrlimit(what, &unix.Rlimit{Cur: n, Max: old.Max}))
	return func() { require.NoError(t, unix.Setrlimit(what, &old)) }
}

// reserveHeap gives the runtime address space to grow into, which it keeps: the
// limit must hit the map of the file, not the heap.
func reserveHeap() {
	room := make([]byte, 256<<20)
	runtime.KeepAlive(&room)
	room = nil
	debug.FreeOSMemory()
	debug.SetGCPercent(20)
}

// TestNoAddressSpace injects an address space limit, so that mmap fails when the
// file is opened, and when it has outgrown its map. Opening must fail cleanly;
// the commit that could not map must poison the store and nothing may crash.
func TestNoAddressSpace(t *testing.T) {
	if !isFaultChild(t) {
		t.Parallel()
		runFaultChild(t)
		return
	}
	path := filepath.Join(t.TempDir(), "idem.db")
	s := openFault(t, path, BoltConfig{})
	_, err := s.Create(t.Context(), completed("k", "v"))
	require.NoError(t, err)
	require.NoError(t, s.Close())

	lift := limit(t, unix.RLIMIT_AS, mapped(t)+512<<20) // a service maps 1 GiB
	_, err = OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: -1})
	lift()
	require.ErrorIs(t, err, syscall.ENOMEM)
	require.ErrorContains(t, err, path)
	requireSound(t, path)

	s = openFault(t, path, BoltConfig{Visitor: true}) // maps what the file needs
	value := faultValue(0, 1<<20)
	reserveHeap()
	for i := range 14 {
		_, err := s.Create(t.Context(), completed(fmt.Sprint(i), value))
		require.NoError(t, err)
	}
	lift = limit(t, unix.RLIMIT_AS, mapped(t)+24<<20) // the map of 16 MiB can be doubled once
	acked := 14
	for err = nil; err == nil && acked < 200; acked++ {
		_, err = s.Create(t.Context(), completed(fmt.Sprint(acked), value))
	}
	lift()
	require.ErrorIs(t, err, ErrPoisoned)
	require.ErrorContains(t, err, syscall.ENOMEM.Error(), "the cause is named")
	requirePoisoned(t, s, faultKey("0"))
	require.NoError(t, s.Close())
	fmt.Println(faultInjected)

	s = openFault(t, path, BoltConfig{LockTimeout: -1})
	for i := range acked - 1 {
		rec, err := s.Get(t.Context(), faultKey(fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, value, string(rec.Value))
	}
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// TestNoFiles injects a limit of open files, one higher each time until opening
// works: of a new store and of one that exists. Each failure must say so, leave
// nothing open, and leave no half-made file.
func TestNoFiles(t *testing.T) {
	if !isFaultChild(t) {
		t.Parallel()
		runFaultChild(t)
		return
	}
	for _, exists := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "idem.db")
		if exists {
			require.NoError(t, openFault(t, path, BoltConfig{}).Close())
		}
		used := openFiles(t)
		for { // fill the gaps, which the limit does not bar
			fd, err := unix.Dup(0)
			require.NoError(t, err)
			if fd >= used {
				require.NoError(t, unix.Close(fd))
				break
			}
		}
		failures := 0
		for {
			lift := limit(t, unix.RLIMIT_NOFILE, uint64(used+failures))
			s, err := OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: -1})
			lift()
			if err == nil {
				require.NoError(t, s.Close())
				break
			}
			failures++
			require.ErrorIs(t, err, syscall.EMFILE)
			require.Equal(t, used, openFiles(t), "a failed open left a file open")
			names, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			for _, name := range names { // at most a whole store whose directory could not be synced
				require.Equal(t, filepath.Base(path), name.Name())
			}
			require.Less(t, failures, 20)
		}
		require.Positive(t, failures)
		requireSound(t, path)
	}
	fmt.Println(faultInjected)
}

// openFiles is one above the highest descriptor in use.
func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	top := 0
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		require.NoError(t, err)
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			top = max(top, fd+1)
		}
	}
	return top
}

// TestNotWritable injects a file and then a directory that may not be written:
// opening for writing must fail with the permission error and change nothing,
// opening for reading must work.
func TestNotWritable(t *testing.T) {
	if !isFaultChild(t) {
		t.Parallel()
		runFaultChild(t, "IDEM_FAULT_PATH="+t.TempDir())
		return
	}
	dir := os.Getenv("IDEM_FAULT_PATH")
	path := filepath.Join(dir, "idem.db")
	s := openFault(t, path, BoltConfig{})
	_, err := s.Create(t.Context(), completed("k", "v"))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	const other = 65534
	if os.Geteuid() == 0 { // root may write anything: become somebody else for good
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
		require.NoError(t, os.Chown(path, other, other))
		require.NoError(t, os.Chown(dir, other, other))
		require.NoError(t, syscall.Setgroups(nil))
		require.NoError(t, syscall.Setgid(other))
		require.NoError(t, syscall.Setuid(other))
	}
	read := func() {
		s := openFault(t, path, BoltConfig{ReadOnly: true})
		rec, err := s.Get(t.Context(), faultKey("k"))
		require.NoError(t, err)
		require.Equal(t, "v", string(rec.Value))
		_, err = s.Create(t.Context(), completed("new", ""))
		require.ErrorIs(t, err, ErrReadOnly)
		_, err = s.Expire(t.Context(), 1)
		require.NoError(t, err, "there is nothing to remove")
		report, err := s.Check(t.Context())
		require.NoError(t, err)
		require.Zero(t, report.Problems)
		require.NoError(t, s.Close())
	}
	require.NoError(t, os.Chmod(path, 0o400))
	same := untouched(t, path)
	_, err = OpenBoltStore(t.Context(), path, BoltConfig{})
	require.ErrorIs(t, err, fs.ErrPermission)
	read()
	same()

	require.NoError(t, os.Chmod(path, 0o000))
	for _, c := range []BoltConfig{{}, {ReadOnly: true}} {
		_, err = OpenBoltStore(t.Context(), path, c)
		require.ErrorIs(t, err, fs.ErrPermission)
	}
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.Chmod(dir, 0o500))
	read()
	_, err = OpenBoltStore(t.Context(), filepath.Join(dir, "new.db"), BoltConfig{})
	require.ErrorIs(t, err, fs.ErrPermission)
	fmt.Println(faultInjected)
	require.NoError(t, os.Chmod(dir, 0o700))
	same()
}
