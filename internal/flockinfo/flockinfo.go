// Package flockinfo finds out who holds the flock(2) lock on a file, so that a
// message can name the process that is in the way:
//
//	if pid, ok := flockinfo.Holder(path); ok {
//		return fmt.Errorf("%s is held by process %d (%s)", path, pid, flockinfo.Command(pid))
//	}
//
// The answers are for people. They are out of date as soon as they are given
// and must not decide whether a lock may be broken.
package flockinfo

// Holder returns the pid of a process that holds a flock on the file at path,
// the first one listed if several share it. It follows symbolic links. ok is
// false if nobody holds one, the file or the lock table cannot be read, the
// holder is in another pid namespace or on another machine, and always outside
// Linux.
//
// Two things to know about the pid. A flock belongs to an open file
// description: if a child process inherited it, pid still names the process
// that took the lock, which may have ended. And where the file system reports
// another device number than the lock table (btrfs, overlayfs), the inode number
// alone decides, so ask only about a file whose lock was just refused.
func Holder(path string) (pid int, ok bool) { return holder(path) }

// Command returns the short name of the process pid, at most a few dozen
// bytes and safe to print: characters that are not printable are removed, since
// a process chooses its own name. It is "" if the name is unknown, and always
// outside Linux.
func Command(pid int) string { return command(pid) }
