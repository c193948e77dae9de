//go:build !unix

package runner

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/term"
)

// brokenPipe is never sent here.
var brokenPipe os.Signal = syscall.Signal(-1)

func endingSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// typed: the console sends Ctrl-C to all of its processes.
func typed(os.Signal) bool { return true }

func systemName(sig os.Signal) string { return sig.String() }

// Terminal reports whether stdin is a terminal.
func Terminal(stdin any) bool {
	f, ok := stdin.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

func (p *process) prepare() {}

func (p *process) guard() (relieve func()) { return func() {} }

// send does nothing: only killing is possible here.
func (p *process) send(os.Signal) {}

func (p *process) sendTerm() { p.sendKill() }

func (p *process) sendKill() { _ = p.cmd.Process.Kill() }

func (p *process) awaitEnd() bool { return false }

func (p *process) endSignal() (os.Signal, bool) { return nil, false }

func (p *process) exitCode() int {
	if p.cmd.ProcessState == nil {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// IsBrokenPipe reports whether err says that the reader of our output has gone.
func IsBrokenPipe(err error) bool { return errors.Is(err, os.ErrClosed) }
