package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// process is a worker seen from the program that measures.
type process struct {
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	encoder *json.Encoder
	decoder *json.Decoder
}

func startProcess(ctx context.Context, name string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-worker", name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.Cancel = in.Close // it closes its store then, and stops its server
	cmd.WaitDelay = time.Minute
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{name, cmd, in, json.NewEncoder(in), json.NewDecoder(out)}, nil
}

func (p *process) ask(req request) (reply, error) {
	var r reply
	err := p.encoder.Encode(req)
	if err == nil {
		err = p.decoder.Decode(&r)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %s: the worker is gone: %w", p.name, req.Op, err)
	}
	switch {
	case r.NotInstalled:
		return r, errNotInstalled
	case r.Error != "":
		return r, fmt.Errorf("%s: %s: %s", p.name, req.Op, r.Error)
	}
	return r, nil
}

// settle waits until the store has done what it puts off, but not for long.
func (p *process) settle(pause time.Duration) {
	before := treeWrites(p.cmd.Process.Pid)
	for range 20 {
		time.Sleep(pause)
		now := treeWrites(p.cmd.Process.Pid)
		if now == before {
			break
		}
		before = now
	}
	syncDisks()
}

// end has the worker close its store, if it is still open, and waits for it.
func (p *process) end() error {
	err := p.in.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil // it was told to end before
	}
	return errors.Join(err, p.cmd.Wait())
}
