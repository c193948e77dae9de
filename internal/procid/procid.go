// Package procid names a process so that a later process on the same machine
// can tell whether it still lives.
//
// A pid alone cannot: it is reused, means nothing after a reboot, and is another
// process in another container. An [ID] therefore also carries the boot id, the
// pid and time namespaces and the start time in clock ticks since boot:
//
//	owner := procid.Self().String() // store it
//	...
//	id, err := procid.Parse(owner)
//	if err != nil {
//		return err
//	}
//	if id.Liveness() == procid.Dead {
//		// nobody with this identity will ever act again
//	}
//
// # Limits
//
// Dead is an answer about this machine only: an ID that came over a network
// file system from another machine has another boot id and counts as Dead.
// A pid reused within one clock tick (10 ms) of its first use is not noticed;
// that needs the whole pid range to wrap around in that time.
// An ID survives execve. Outside Linux only the process itself is recognised.
package procid

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const (
	version = "p1"
	// unknown stands in for everything but the pid in the short text form.
	unknown = "unknown"
	// maxPID is far above what Linux hands out (4194304) and still an int on
	// 32-bit platforms.
	maxPID = 1<<31 - 1
)

// ID identifies one process. It is a comparable value: two IDs of the same
// process, taken from the same namespaces, are equal. The zero value names no
// process; its Liveness is [Unknown] and its text is refused by [Parse].
type ID struct {
	bootID string // empty: only pid is known
	pidNS  uint64 // inode of the pid namespace in which pid is a name
	timeNS uint64 // inode of the time namespace start was read in, 0 if none
	pid    int
	start  uint64 // clock ticks since boot
}

// Self returns the identity of the calling process. Where the system does not
// tell enough (other OS, /proc missing, hidden or belonging to another pid
// namespace, a boot id made up by a container manager) the ID carries the pid
// only: it is Alive to this process and Unknown to all others, except one that
// has the same pid and can say just as little about itself.
//
// Nothing is cached; a call costs a handful of small reads from /proc.
func Self() ID {
	pid := os.Getpid()
	id, err := Of(pid)
	if err != nil {
		return ID{pid: pid}
	}
	return id
}

// Parse reads the form written by [ID.String] and accepts nothing else, not
// even other spellings of the same numbers, so that texts are equal exactly
// when the IDs are.
func Parse(s string) (ID, error) {
	id, ok := parseFields(strings.Split(s, ":"))
	if !ok || id.String() != s {
		return ID{}, fmt.Errorf("malformed process id %.120q", s)
	}
	return id, nil
}

func parseFields(f []string) (ID, bool) {
	switch {
	case len(f) == 3 && f[0] == version && f[1] == unknown:
		pid, ok := parsePID(f[2])
		return ID{pid: pid}, ok
	case len(f) == 6 && f[0] == version && validBootID(f[1]):
		pidNS, err1 := strconv.ParseUint(f[2], 10, 64)
		timeNS, err2 := strconv.ParseUint(f[3], 10, 64)
		pid, ok := parsePID(f[4])
		start, err3 := strconv.ParseUint(f[5], 10, 64)
		ok = ok && err1 == nil && err2 == nil && err3 == nil
		return ID{bootID: f[1], pidNS: pidNS, timeNS: timeNS, pid: pid, start: start}, ok
	default:
		return ID{}, false
	}
}

// parsePID refuses 0 and negative numbers: to kill(2) those are process groups.
func parsePID(s string) (int, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > maxPID {
		return 0, false
	}
	return int(n), true
}

// validBootID reports whether s looks like the kernel's lower-case UUID.
func validBootID(s string) bool {
	if len(s) != 36 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef-") == "" && strings.Count(s, "-") == 4
}

// String returns the text form, printable ASCII without spaces, '#' or '/', at
// most 120 bytes: "p1:<boot id>:<pid ns>:<time ns>:<pid>:<start>", or
// "p1:unknown:<pid>".
func (id ID) String() string {
	if id.bootID == "" {
		return fmt.Sprintf("%s:%s:%d", version, unknown, id.pid)
	}
	return fmt.Sprintf("%s:%s:%d:%d:%d:%d", version, id.bootID, id.pidNS, id.timeNS, id.pid, id.start)
}

// PID returns the process number, meaningful only in the pid namespace the ID
// was taken in, and 0 for the zero ID.
func (id ID) PID() int { return id.pid }

// Liveness asks the system whether the process still exists. Dead and Alive are
// certain at the moment of the call, and Dead stays true for ever; everything
// the system does not prove is Unknown. A killed process whose parent has not
// collected it yet is Dead once all its threads are gone.
func (id ID) Liveness() Liveness {
	switch {
	case id.pid < 1:
		return Unknown
	case id == Self():
		return Alive
	case id.bootID == "":
		return Unknown
	default:
		return probe(id)
	}
}

// Liveness says what is known about a process. The zero value is invalid.
type Liveness int

const (
	// Alive means that the process exists.
	Alive Liveness = iota + 1
	// Dead means that the process has ended and can do nothing any more.
	Dead
	// Unknown means that neither could be proved.
	Unknown
)

// String returns "alive", "dead" or "unknown", and "Liveness(n)" for any other
// value.
func (l Liveness) String() string {
	switch l {
	case Alive:
		return "alive"
	case Dead:
		return "dead"
	case Unknown:
		return "unknown"
	default:
		return fmt.Sprintf("Liveness(%d)", int(l))
	}
}
