package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// syncDisks writes out what is still in memory, so that it is not written during
// the turn of the next store.
func syncDisks() { unix.Sync() }

// deviceBytes returns how many bytes the block device under a folder has
// written, for whomever. The kernel's count for each process, write_bytes, will
// not do: it counts pages by the folio, up to 2 MiB for 500 bytes in a file that
// was filled with large writes, as logs are.
func deviceBytes(dir string) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return 0, err
	}
	path := fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	line, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // the file system is not on one device
	}
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(line))
	if len(fields) < 7 {
		return 0, fmt.Errorf("%s: %q", path, line)
	}
	sectors, err := strconv.ParseInt(fields[6], 10, 64)
	return sectors * 512, err
}

// treeWrites returns a number that stays the same while a process and its
// descendants write nothing.
func treeWrites(root int) int64 {
	parents, err := processParents()
	if err != nil {
		return 0
	}
	var total int64
	for pid := range parents {
		if descends(parents, pid, root) {
			total += writeBytes(pid)
		}
	}
	return total
}

func processParents() (map[int]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	parents := make(map[int]int, len(stats))
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		_, rest, _ := bytes.Cut(stat[bytes.IndexByte(stat, '('):], []byte(") "))
		if fields := bytes.Fields(rest); len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(string(fields[1]))
		}
	}
	return parents, nil
}

func descends(parents map[int]int, pid, root int) bool {
	for ; pid > 1; pid = parents[pid] {
		if pid == root {
			return true
		}
	}
	return false
}

// writeBytes returns 0 for a process that has just ended or may not be looked at.
func writeBytes(pid int) int64 {
	counters, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(counters)) {
		if text, found := strings.CutPrefix(line, "write_bytes: "); found {
			n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return n
		}
	}
	return 0
}

// unprivileged returns how to start a process that must not run as root, and
// gives it the folder. Nil means that this process is not root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr, os.Chown(dir, int(uid), int(gid))); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}
