//go:build unix

package runner

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const brokenPipe = syscall.SIGPIPE

func endingSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, brokenPipe}
}

// typed reports whether a terminal sends the signal to its whole foreground
// group when a key is pressed.
func typed(sig os.Signal) bool { return sig == syscall.SIGINT || sig == syscall.SIGQUIT }

func systemName(sig os.Signal) string {
	n, ok := sig.(syscall.Signal)
	if !ok {
		return ""
	}
	return unix.SignalName(n)
}

// Terminal reports whether a person's terminal is attached to us: stdin is one,
// or we are in the foreground of the one that controls us, from which programs
// ask for passwords whatever their stdin is.
func Terminal(stdin any) bool {
	if f, ok := stdin.(interface{ Fd() uintptr }); ok && term.IsTerminal(int(f.Fd())) {
		return true
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func (p *process) prepare() {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !p.shared}
	dieWithParent(p.cmd.SysProcAttr)
}

// send, sendTerm and sendKill are called with mu held, while the process has
// not been collected. That it has ended is not an error.

func (p *process) send(sig os.Signal) {
	if p.shared {
		_ = p.cmd.Process.Signal(sig)
		return
	}
	if n, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(-p.cmd.Process.Pid, n)
	}
}

func (p *process) sendTerm() {
	p.send(syscall.SIGTERM)
	p.send(syscall.SIGCONT) // a stopped process would not see it
}

func (p *process) sendKill() { p.send(syscall.SIGKILL) }

// endSignal is the signal that killed the command, if one did.
func (p *process) endSignal() (os.Signal, bool) {
	if p.cmd.ProcessState == nil {
		return nil, false
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status.Signal(), ok && status.Signaled()
}

func (p *process) exitCode() int {
	if p.cmd.ProcessState == nil {
		return -1
	}
	if sig, ok := p.endSignal(); ok {
		return (&CaughtError{Signal: sig}).ExitCode()
	}
	return p.cmd.ProcessState.ExitCode()
}

// IsBrokenPipe reports whether err says that the reader of our output has gone.
func IsBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
