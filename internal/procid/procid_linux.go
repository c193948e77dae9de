package procid

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const procRoot = procfs("/proc")

// Of returns the identity of the process that pid names in the caller's pid
// namespace. A process inside a container therefore has one ID seen from the
// host and another one, unequal, seen from inside. It returns an error that
// wraps [fs.ErrNotExist] if there is no such process or it is hidden from the
// caller, and an error without that if /proc cannot be relied on.
func Of(pid int) (ID, error) {
	id, err := procRoot.identify(pid)
	if err != nil {
		return ID{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return id, nil
}

func probe(id ID) Liveness { return procRoot.probe(id) }

// procfs is the directory where a proc file system is mounted.
type procfs string

func (p procfs) path(elem string) string { return filepath.Join(string(p), elem) }

func (p procfs) identify(pid int) (ID, error) {
	if pid < 1 || pid > maxPID {
		return ID{}, errors.New("pid out of range")
	}
	id, err := p.here()
	if err != nil {
		return ID{}, err
	}
	st, err := p.stat(pid)
	if err != nil {
		return ID{}, err
	}
	id.pid, id.start = pid, st.start
	return id, nil
}

// here returns an ID with what all processes that share the caller's boot and
// namespaces have in common. Its errors never wrap fs.ErrNotExist, which is
// kept for a missing process.
func (p procfs) here() (ID, error) {
	// After unshare --pid without a new mount, /proc still numbers processes as
	// the outer namespace does, and /proc/<our pid> is somebody else.
	self, err := os.Readlink(p.path("self"))
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return ID{}, fmt.Errorf("%s does not show this pid namespace", p)
	}
	bootID, err := p.bootID()
	if err != nil {
		return ID{}, err
	}
	pidNS, err := p.namespace("pid")
	if err != nil {
		return ID{}, fmt.Errorf("read pid namespace: %v", err)
	}
	// Start times are shifted by the reader's time namespace, so they compare
	// only within one. Kernels without time namespaces have no such link; any
	// other failure also gives 0, which at worst turns Dead into Unknown.
	timeNS, _ := p.namespace("time")
	return ID{bootID: bootID, pidNS: pidNS, timeNS: timeNS}, nil
}

// bootID refuses a boot id that is not the kernel's own: systemd-nspawn and LXC
// mount a random one over it in each container. It would make every process
// outside, on the same boot, look dead, and this one look dead from outside.
func (p procfs) bootID() (string, error) {
	const name = "sys/kernel/random/boot_id"
	var root, file unix.Stat_t
	if err := unix.Stat(string(p), &root); err != nil {
		return "", fmt.Errorf("stat %s: %v", p, err)
	}
	if err := unix.Stat(p.path(name), &file); err != nil {
		return "", fmt.Errorf("stat boot id: %v", err)
	}
	if root.Dev != file.Dev {
		return "", errors.New("boot id is replaced by a mount")
	}
	b, err := os.ReadFile(p.path(name))
	if err != nil {
		return "", fmt.Errorf("read boot id: %v", err)
	}
	s := strings.TrimSpace(string(b))
	if !validBootID(s) {
		return "", fmt.Errorf("malformed boot id %.40q", s)
	}
	return s, nil
}

// namespace returns the inode number in a link like "pid:[4026531836]".
func (p procfs) namespace(kind string) (uint64, error) {
	link, err := os.Readlink(p.path("self/ns/" + kind))
	if err != nil {
		return 0, err
	}
	digits := strings.TrimSuffix(strings.TrimPrefix(link, kind+":["), "]")
	return strconv.ParseUint(digits, 10, 64)
}

func (p procfs) probe(id ID) Liveness {
	here, err := p.here()
	switch {
	case err != nil:
		// Without our own namespace kill(2) proves nothing either.
		return Unknown
	case id.bootID != here.bootID:
		return Dead
	case id.pidNS != here.pidNS || id.timeNS != here.timeNS:
		return Unknown
	}
	st, err := p.stat(id.pid)
	switch {
	case err != nil:
		return signalProbe(id.pid)
	case st.start != id.start || st.ended():
		return Dead
	default:
		return Alive
	}
}

// signalProbe settles what an unreadable /proc/<pid> means. A missing directory
// is not proof of death: under hidepid it is merely another user's process.
func signalProbe(pid int) Liveness {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return Dead
	}
	return Unknown
}

// stat holds the fields of /proc/<pid>/stat that matter here.
type stat struct {
	state   byte
	threads int
	start   uint64 // clock ticks since boot
}

// ended reports whether nothing of the process runs any more. The state is that
// of the first thread, which may be a zombie while others go on: it called
// pthread_exit, or they are stuck in a write that a kill cannot interrupt.
func (s stat) ended() bool {
	switch s.state {
	case 'Z', 'X', 'x':
		return s.threads <= 1
	default:
		return false
	}
}

func (p procfs) stat(pid int) (stat, error) {
	b, err := os.ReadFile(p.path(strconv.Itoa(pid) + "/stat"))
	if errors.Is(err, unix.ESRCH) { // ended between open and read
		return stat{}, fmt.Errorf("read stat: %w", fs.ErrNotExist)
	}
	if err != nil {
		return stat{}, err
	}
	st, ok := parseStat(string(b))
	if !ok {
		return stat{}, errors.New("malformed stat")
	}
	return st, nil
}

// parseStat starts behind the last ')': the name before it is chosen by the
// process and may hold spaces, parentheses and line breaks.
func parseStat(s string) (stat, bool) {
	const state, threads, start = 3, 20, 22 // numbered as in proc_pid_stat(5)
	end := strings.LastIndexByte(s, ')')
	if end < 0 {
		return stat{}, false
	}
	f := strings.Fields(s[end+1:])
	if len(f) <= start-state || len(f[0]) != 1 {
		return stat{}, false
	}
	n, err := strconv.Atoi(f[threads-state])
	if err != nil {
		return stat{}, false
	}
	ticks, err := strconv.ParseUint(f[start-state], 10, 64)
	if err != nil {
		return stat{}, false
	}
	return stat{state: f[0][0], threads: n, start: ticks}, true
}
