package runner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// process is the command while it runs.
type process struct {
	cmd    *exec.Cmd
	shared bool // it stays in our process group

	mu       sync.Mutex
	started  bool
	gone     bool // it has ended: its number may soon be another's
	waiting  []os.Signal
	told     os.Signal // the first signal that came for us while it ran
	timedOut bool
	stopped  bool // because ctx ended
}

// start starts the command and sends it what came in the meantime.
func (p *process) start() error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = true
	for _, sig := range p.waiting {
		p.send(sig)
	}
	return nil
}

// handOn passes a signal on that was sent to us.
func (p *process) handOn(sig os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	if p.told == nil {
		p.told = sig
	}
	switch {
	case p.shared && typed(sig): // the terminal has sent it to the command, too
	case p.started:
		p.send(sig)
	default:
		p.waiting = append(p.waiting, sig)
	}
}

// watch stops the command when its time is over or ctx ends, until the returned
// function is called, which waits for that to have ended.
func (p *process) watch(ctx context.Context, timeout, grace time.Duration) (stop func()) {
	if grace == 0 {
		grace = DefaultGrace
	}
	ended := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		var late <-chan time.Time
		if timeout > 0 {
			timer := time.NewTimer(timeout)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-ended:
			return
		case <-late:
			p.terminate(&p.timedOut)
		case <-ctx.Done():
			p.terminate(&p.stopped)
		}
		patience := time.NewTimer(grace)
		defer patience.Stop()
		select {
		case <-ended:
		case <-patience.C:
			p.kill()
		}
	})
	return func() {
		close(ended)
		done.Wait()
	}
}

// terminate asks the command to end, and notes why, unless it has ended.
func (p *process) terminate(why *bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	*why = true
	p.sendTerm()
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		p.sendKill()
	}
}

// wait waits for the end of the command. Where it can it learns of the end
// before it collects the process: until then no other process or group can have
// its number, so that no signal can reach a stranger.
func (p *process) wait() error {
	if p.awaitEnd() {
		p.leave()
	}
	err := p.cmd.Wait()
	p.leave()
	return err
}

func (p *process) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone && (p.timedOut || p.stopped) {
		p.sendKill() // what it may have left in its group was told to end as well
	}
	p.gone = true
}

// cutShort says why the end of the command was not its own, or returns nil.
func (p *process) cutShort(timeout time.Duration, cause error) *CutShortError {
	p.mu.Lock()
	defer p.mu.Unlock()
	sig, signalled := p.endSignal()
	switch {
	case p.timedOut:
		return &CutShortError{Why: fmt.Sprintf("was stopped after %s, its timeout", timeout), TimedOut: true}
	case p.stopped:
		return &CutShortError{Why: fmt.Sprintf("was stopped: %v", cause), Cause: cause}
	case signalled:
		return &CutShortError{Why: "was killed by " + signalName(sig)}
	case p.told != nil && p.exitCode() != 0:
		return &CutShortError{Why: fmt.Sprintf("ended with exit code %d after it got %s", p.exitCode(), signalName(p.told))}
	}
	return nil
}
