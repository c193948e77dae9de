package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"
)

// Every store works in a process of its own, so that neither its memory, nor its
// background work, nor what it writes is put down to another. The process takes
// requests from its standard input and answers each on its standard output.

// request is one turn of a worker.
type request struct {
	Op      string        `json:"op"` // setup, round, repeat, close
	Target  target        `json:"target"`
	Length  time.Duration `json:"length"`
	Profile string        `json:"profile"` // file for a CPU profile from setup to close
}

type reply struct {
	Error        string   `json:"error"`
	NotInstalled bool     `json:"not_installed"`
	Round        round    `json:"round"`
	Repeats      []repeat `json:"repeats"`
}

// work answers requests until the input ends. The store is closed then, also if
// the process that asks is gone.
func work(name string, in io.Reader, out io.Writer) error {
	found, err := chosen(name)
	if err != nil {
		return err
	}
	w := worker{store: found[0].open()}
	requests, replies := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var req request
		if err := requests.Decode(&req); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, w.close())
		}
		var r reply
		if err := w.do(req, &r); err != nil {
			r.Error, r.NotInstalled = err.Error(), errors.Is(err, errNotInstalled)
		}
		if err := replies.Encode(r); err != nil {
			return errors.Join(err, w.close())
		}
	}
}

type worker struct {
	store   store
	open    bool
	target  target
	profile *os.File
}

func (w *worker) do(req request, r *reply) (err error) {
	switch req.Op {
	case "setup":
		w.target = req.Target
		if err := w.store.Setup(req.Target); err != nil {
			return err
		}
		w.open = true
		return w.startProfile(req.Profile)
	case "round":
		r.Round, err = runRound(w.store, w.target.Callers, req.Length)
		return err
	case "repeat":
		repeater, ok := w.store.(interface{ Repeat() ([]repeat, error) })
		if !ok {
			return errors.ErrUnsupported
		}
		r.Repeats, err = repeater.Repeat()
		return err
	case "close":
		return w.close()
	}
	return fmt.Errorf("unknown request %q", req.Op)
}

func (w *worker) startProfile(path string) (err error) {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if w.profile, err = os.Create(path); err != nil {
		return err
	}
	return pprof.StartCPUProfile(w.profile)
}

func (w *worker) close() error {
	if !w.open {
		return nil
	}
	w.open = false
	err := w.store.Close()
	if w.profile != nil {
		pprof.StopCPUProfile()
		err = errors.Join(err, w.profile.Close())
	}
	return err
}
