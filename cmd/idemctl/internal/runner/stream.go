package runner

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// What ends the reading of a pipe that somebody else keeps open after the
// command has ended. All that the command has printed fits into the pipe, so it
// is read before any of these can apply.
const (
	drainSilence = time.Second
	drainWait    = 5 * time.Second // spent waiting for output, not writing it
	drainBytes   = 1 << 20         // the largest pipe that needs no privileges
)

// stream carries one output of the command to a writer and the recorder.
type stream struct {
	id       Stream
	to       io.Writer
	rec      *recorder
	readEnd  *os.File
	writeEnd *os.File

	ended atomic.Bool // the command has ended
	done  chan struct{}
	held  bool // the reading ended, but not the writing; to be read after done
}

func newStream(id Stream, to io.Writer, rec *recorder) (*stream, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &stream{id: id, to: to, rec: rec, readEnd: r, writeEnd: w, done: make(chan struct{})}, nil
}

// start begins to copy. The command holds the other end by now.
func (s *stream) start() {
	_ = s.writeEnd.Close() // our copy of it, or reading would never end
	go s.copy()
}

func (s *stream) close() {
	_ = s.writeEnd.Close() // a second close is an error of no interest
	_ = s.readEnd.Close()
}

func (s *stream) copy() {
	defer close(s.done)
	buf := make([]byte, 32<<10)
	left := leftover{wait: drainWait, bytes: drainBytes}
	for {
		ended := s.ended.Load()
		if ended && !left.allow(s.readEnd) {
			s.held = true
			return
		}
		began := time.Now()
		n, err := s.readEnd.Read(buf)
		if ended {
			left.wait -= time.Since(began)
			left.bytes -= n
		}
		if n > 0 {
			s.rec.add(s.id, buf[:n])
			s.write(buf[:n])
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && (!ended || time.Now().Before(left.until)):
			// drain has woken us, to read on with a limit.
		default:
			s.held = ended && errors.Is(err, os.ErrDeadlineExceeded)
			return
		}
	}
}

// write hands output on until that fails; the command is not to be hurt by a
// reader of ours that went away.
func (s *stream) write(data []byte) {
	if s.rec.unwritable(s.id) {
		return
	}
	if _, err := s.to.Write(data); err != nil {
		s.rec.giveUp(s.id, err)
	}
}

// leftover is how much more is read after the end of the command.
type leftover struct {
	wait  time.Duration
	bytes int
	until time.Time // of the last read granted
}

// allow grants one more read, or none.
func (l *leftover) allow(f *os.File) bool {
	if l.wait <= 0 || l.bytes <= 0 {
		return false
	}
	l.until = time.Now().Add(min(drainSilence, l.wait))
	_ = f.SetReadDeadline(l.until) // see drain for where it cannot
	return true
}

// drain reads what is left in the pipes after the command has ended. It
// reports whether somebody else still holds one of them.
func drain(streams ...*stream) (held bool) {
	var abandon <-chan time.Time
	for _, s := range streams {
		s.ended.Store(true)
		if err := s.readEnd.SetReadDeadline(time.Now()); errors.Is(err, os.ErrNoDeadline) && abandon == nil {
			abandon = time.After(drainWait)
		}
	}
	for _, s := range streams {
		select {
		case <-s.done:
			held = held || s.held
		case <-abandon: // its goroutine ends with the process
			return true
		}
	}
	return held
}
