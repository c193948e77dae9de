//go:build unix

package runner

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// guardScript waits for a word from us. The end of input without one is our
// death: the other end of the pipe is closed by the kernel then, and by nobody
// else.
const guardScript = `read -r word || kill -s KILL -- "-$1"`

// guard starts a process that outlives us by the moment it takes to kill the
// command's group. It is in a group of its own, so that what kills our group
// does not kill it. A guard that cannot be had is done without.
func (p *process) guard() (relieve func()) {
	none := func() {}
	if p.shared {
		return none
	}
	its, ours, err := os.Pipe()
	if err != nil {
		return none
	}
	cmd := exec.Command("/bin/sh", "-c", guardScript, "idemctl-guard", strconv.Itoa(p.cmd.Process.Pid))
	cmd.Dir, cmd.Env, cmd.Stdin = "/", []string{}, its
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_ = its.Close()
	if err != nil {
		_ = ours.Close()
		return none
	}
	return func() {
		_, _ = ours.WriteString("relieved\n") // it may have been killed
		_ = ours.Close()
		_ = cmd.Wait()
	}
}
