package runner

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// CaughtError says that a signal asked us to end before a command ran.
type CaughtError struct {
	Signal os.Signal
}

func (e *CaughtError) Error() string { return "stopped by " + signalName(e.Signal) }

// ExitCode is 128 plus the number of the signal.
func (e *CaughtError) ExitCode() int {
	if n, ok := e.Signal.(syscall.Signal); ok {
		return exitSignalled + int(n)
	}
	return exitSignalled
}

// Signals catches the signals that would end us, from Catch to Stop, and hands
// them to the running command. While none runs they cancel Context instead, and
// no command starts any more. It is safe for concurrent use.
type Signals struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	caught chan os.Signal
	done   sync.WaitGroup

	mu     sync.Mutex
	first  *CaughtError // while no command ran
	handOn func(os.Signal)
}

// Catch begins to catch. A broken pipe no longer ends us either, as long as it
// does not: writing then reports an error.
func Catch(parent context.Context) *Signals {
	s := &Signals{caught: make(chan os.Signal, 16)}
	s.ctx, s.cancel = context.WithCancelCause(parent)
	for _, sig := range endingSignals() {
		if !signal.Ignored(sig) { // else Notify would end the ignoring
			signal.Notify(s.caught, sig)
		}
	}
	s.done.Go(s.dispatch)
	return s
}

// Context is cancelled with a *CaughtError by a signal that comes while no
// command runs, and with its parent.
func (s *Signals) Context() context.Context { return s.ctx }

// Caught returns the signal that came while no command ran, or nil.
func (s *Signals) Caught() *CaughtError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// Stop ends the catching.
func (s *Signals) Stop() {
	signal.Stop(s.caught)
	close(s.caught)
	s.done.Wait()
	s.cancel(nil)
}

func (s *Signals) dispatch() {
	for sig := range s.caught {
		if sig == brokenPipe {
			continue
		}
		s.mu.Lock()
		if s.handOn != nil {
			s.handOn(sig)
		} else if s.first == nil {
			s.first = &CaughtError{Signal: sig}
			s.cancel(s.first)
		}
		s.mu.Unlock()
	}
}

// attach hands signals to a command that is about to start, unless one came
// already.
func (s *Signals) attach(handOn func(os.Signal)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first != nil {
		return s.first
	}
	s.handOn = handOn
	return nil
}

// detach drops what comes from now on: the command has ended and what is left
// to do is to write that down.
func (s *Signals) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handOn = func(os.Signal) {}
}

func signalName(sig os.Signal) string {
	if name := systemName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %v", sig)
}
