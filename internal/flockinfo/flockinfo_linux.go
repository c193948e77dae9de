package flockinfo

import (
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// fileID is what /proc/locks knows of a file.
type fileID struct {
	major, minor uint32
	inode        uint64
}

// lock is one granted flock. pid is 0 or negative if its process has no number
// in the reader's pid namespace.
type lock struct {
	pid  int
	file fileID
}

func holder(path string) (int, bool) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, false
	}
	table, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, false
	}
	dev := uint64(st.Dev) // narrower on some architectures
	return find(parseLocks(string(table)), fileID{unix.Major(dev), unix.Minor(dev), st.Ino})
}

// find prefers locks on the very file. Only if there is none does it take one
// on the same inode number of another device, and then only if it is the only
// one: with several, any choice could name a bystander.
func find(locks []lock, file fileID) (pid int, ok bool) {
	var exact bool
	var sameInode []lock
	for _, l := range locks {
		if l.file.inode != file.inode {
			continue
		}
		sameInode = append(sameInode, l)
		if l.file != file {
			continue
		}
		exact = true
		if l.pid > 0 {
			return l.pid, true
		}
	}
	if !exact && len(sameInode) == 1 && sameInode[0].pid > 0 {
		return sameInode[0].pid, true
	}
	return 0, false
}

// parseLocks returns the granted flocks in the text of /proc/locks and skips
// every line that is anything else.
func parseLocks(table string) []lock {
	var locks []lock
	for line := range strings.Lines(table) {
		if l, ok := parseLock(line); ok {
			locks = append(locks, l)
		}
	}
	return locks
}

// parseLock reads a line like
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:01:1234567 0 EOF
//
// A waiter has "->" in the place of FLOCK and so drops out.
func parseLock(line string) (lock, bool) {
	f := strings.Fields(line)
	if len(f) != 8 || f[1] != "FLOCK" || (f[3] != "WRITE" && f[3] != "READ") {
		return lock{}, false
	}
	pid, err := strconv.ParseInt(f[4], 10, 32)
	if err != nil {
		return lock{}, false
	}
	file, ok := parseFileID(f[5])
	return lock{pid: int(pid), file: file}, ok
}

// parseFileID reads major:minor:inode, where only the inode is decimal.
func parseFileID(s string) (fileID, bool) {
	f := strings.Split(s, ":")
	if len(f) != 3 {
		return fileID{}, false
	}
	major, err1 := strconv.ParseUint(f[0], 16, 32)
	minor, err2 := strconv.ParseUint(f[1], 16, 32)
	inode, err3 := strconv.ParseUint(f[2], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return fileID{}, false
	}
	return fileID{uint32(major), uint32(minor), inode}, true
}

func command(pid int) string {
	if pid < 1 {
		return ""
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return printable(string(b))
}

// printable also drops what is not valid UTF-8 and the invisible characters
// that change the direction of text, not only control characters.
func printable(s string) string {
	clean := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.TrimSpace(clean)
}
