package flockinfo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestHolder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		how  int
	}{
		{"exclusive", unix.LOCK_EX},
		{"shared", unix.LOCK_SH},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "db")
			f, err := os.Create(path)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, f.Close()) })
			_, ok := Holder(path)
			require.False(t, ok, "before the lock")

			require.NoError(t, unix.Flock(int(f.Fd()), tt.how))
			pid, ok := Holder(path)
			require.True(t, ok)
			require.Equal(t, os.Getpid(), pid)

			link := path + ".link"
			require.NoError(t, os.Symlink(path, link))
			pid, ok = Holder(link)
			require.True(t, ok)
			require.Equal(t, os.Getpid(), pid)

			require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_UN))
			_, ok = Holder(path)
			require.False(t, ok, "after the lock")
		})
	}
}

func TestParseLocks(t *testing.T) {
	t.Parallel()
	file := fileID{0xfe, 1, 1234567}
	tests := []struct {
		name string
		in   string
		want []lock
	}{
		{"exclusive", "1: FLOCK  ADVISORY  WRITE 1234 fe:01:1234567 0 EOF\n", []lock{{1234, file}}},
		{"shared, no line end", "1: FLOCK  ADVISORY  READ  1234 fe:01:1234567 0 EOF", []lock{{1234, file}}},
		{"wide device", "1: FLOCK  ADVISORY  WRITE 1 103:fffff:7 0 EOF\n", []lock{{1, fileID{0x103, 0xfffff, 7}}}},
		{"other pid namespace", "1: FLOCK  ADVISORY  WRITE 0 fe:01:1234567 0 EOF\n", []lock{{0, file}}},
		{"remote", "1: FLOCK  ADVISORY  WRITE -1 fe:01:1234567 0 EOF\n", []lock{{-1, file}}},
		{"waiters", "1: FLOCK  ADVISORY  WRITE 1 fe:01:1234567 0 EOF\n" +
			"1: -> FLOCK  ADVISORY  WRITE 2 fe:01:1234567 0 EOF\n" +
			"1:  -> FLOCK  ADVISORY  READ 3 fe:01:1234567 0 EOF\n", []lock{{1, file}}},
		{"other kinds", "1: POSIX  ADVISORY  WRITE 1 fe:01:1234567 0 EOF\n" +
			"2: OFDLCK ADVISORY  READ -1 fe:01:1234567 0 EOF\n" +
			"3: LEASE  ACTIVE    READ 1 fe:01:1234567 0 EOF\n" +
			"4: FLOCK  MSNFS     RW 1 fe:01:1234567 0 EOF\n", nil},
		{"good after bad", "1: FLOCK\n\n2: FLOCK  ADVISORY  WRITE 1234 fe:01:1234567 0 EOF\n", []lock{{1234, file}}},
		{"empty", "", nil},
		{"pid not a number", "1: FLOCK  ADVISORY  WRITE x fe:01:1234567 0 EOF\n", nil},
		{"pid too large", "1: FLOCK  ADVISORY  WRITE 2147483648 fe:01:1234567 0 EOF\n", nil},
		{"no inode", "1: FLOCK  ADVISORY  WRITE 1 <none>:0 0 EOF\n", nil},
		{"device not hexadecimal", "1: FLOCK  ADVISORY  WRITE 1 fg:01:1234567 0 EOF\n", nil},
		{"inode hexadecimal", "1: FLOCK  ADVISORY  WRITE 1 fe:01:12ab 0 EOF\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, parseLocks(tt.in))
		})
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	file := fileID{0xfe, 1, 7}
	otherDevice := fileID{0, 0x2a, 7}
	otherInode := fileID{0xfe, 1, 8}
	tests := []struct {
		name  string
		locks []lock
		pid   int
		ok    bool
	}{
		{"no locks", nil, 0, false},
		{"the file", []lock{{1, otherInode}, {2, file}}, 2, true},
		{"other file", []lock{{1, otherInode}}, 0, false},
		{"shared by two", []lock{{1, file}, {2, file}}, 1, true},
		{"shared with another namespace", []lock{{0, file}, {2, file}}, 2, true},
		{"other namespace", []lock{{0, file}}, 0, false},
		{"remote", []lock{{-1, file}}, 0, false},
		{"device differs, one candidate", []lock{{1, otherDevice}, {2, otherInode}}, 1, true},
		{"device differs, two candidates", []lock{{1, otherDevice}, {2, fileID{0, 0x2b, 7}}}, 0, false},
		{"device differs, other namespace", []lock{{0, otherDevice}}, 0, false},
		{"exact before same inode", []lock{{1, otherDevice}, {2, file}}, 2, true},
		{"exact in other namespace, bystander visible", []lock{{0, file}, {1, otherDevice}}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pid, ok := find(tt.locks, file)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.pid, pid)
		})
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "s\x1b[2J\nl p\xff")
	require.NoError(t, os.Symlink(sleep, link))
	cmd := exec.Command(link, "600")
	cmd.Args[0] = "sleep" // multi-call binaries choose by it
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Equal(t, "s[2Jl p", Command(cmd.Process.Pid))
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "idemctl\n", "idemctl"},
		{"inner space stays", " my app \n", "my app"},
		{"letters of any script", "zürich-名前", "zürich-名前"},
		{"control characters", "a\x00b\x1b[31mc\u0085\x7f", "ab[31mc"},
		{"text direction", "a\u202eb", "ab"},
		{"invalid UTF-8", "a\xff\xfeb", "ab"},
		{"nothing left", "\x1b\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, printable(tt.in))
		})
	}
}

func FuzzParseLocks(f *testing.F) {
	f.Add("1: FLOCK  ADVISORY  WRITE 1234 fe:01:1234567 0 EOF\n")
	f.Add("1: FLOCK  ADVISORY  READ 0 fe:01:1234567 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 2 fe:01:1234567 0 EOF\n")
	f.Fuzz(func(t *testing.T, table string) {
		locks := parseLocks(table)
		require.LessOrEqual(t, len(locks), strings.Count(table, "FLOCK"))
		for _, l := range locks {
			if pid, ok := find(locks, l.file); ok {
				require.Positive(t, pid)
			}
		}
	})
}

func FuzzPrintable(f *testing.F) {
	f.Add("idemctl\n")
	f.Add("\x1b]0;title\x07")
	f.Fuzz(func(t *testing.T, s string) {
		got := printable(s)
		require.False(t, strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", got)
		require.Equal(t, got, printable(got))
	})
}
