package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// server is a database server that a store has started for itself.
type server struct {
	cmd   *exec.Cmd
	out   bytes.Buffer // read after ended
	ended chan struct{}
}

// startServer starts cmd and waits until ready returns nil.
func startServer(cmd *exec.Cmd, ready func(context.Context) error) (*server, error) {
	s := &server{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &s.out, &s.out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.ended)
		_ = cmd.Wait() // how it ended does not matter, its output does
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return s, nil
		}
		select {
		case <-s.ended:
			return nil, fmt.Errorf("%s ended: %s", cmd.Path, s.out.Bytes())
		case <-ctx.Done():
			s.stop(os.Kill)
			return nil, fmt.Errorf("%s does not answer: %w", cmd.Path, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop asks the server to end, and insists after a while.
func (s *server) stop(sig os.Signal) {
	_ = s.cmd.Process.Signal(sig) // fails only if it has ended
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}
