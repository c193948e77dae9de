package runner

import (
	"cmp"
	"io"
	"sync"
	"time"
)

// Stream is one of a command's outputs, by its file descriptor.
type Stream uint8

// The two outputs.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// MaxKeep is the largest useful Command.Keep: a Result with that much output is
// below 16 MiB as JSON, however the output was chopped.
const MaxKeep = 8 << 20

// maxChunks bounds the recorded changes between the streams, which cost space
// of their own. What comes after them is not kept.
const maxChunks = 1 << 16

// Result is how a command ended and what it printed. It is stored as JSON.
type Result struct {
	ExitCode int `json:"exit_code"`
	// Chunks is the recorded output in the order it was read.
	Chunks []Chunk `json:"chunks,omitempty"`
	// NotKept is the number of bytes printed after what Chunks hold.
	NotKept   int64         `json:"not_kept,omitempty"`
	StartedAt time.Time     `json:"started_at"`
	Duration  time.Duration `json:"duration_ns"`
	// Unwritten is why output could not be handed on while the command ran: the
	// disk is full, or the reader has gone. It is not stored.
	Unwritten error `json:"-"`
	// LeftBehind says that a process outlived the command and kept its output. It
	// is not stored.
	LeftBehind bool `json:"-"`
}

// Chunk is a piece of output.
type Chunk struct {
	Stream Stream `json:"fd"`
	Data   []byte `json:"data"`
}

// Replay prints the recorded output again, each chunk to its stream. It returns
// the first error of each writer but goes on with the other one.
func Replay(r Result, stdout, stderr io.Writer) error {
	var failed [Stderr + 1]error
	for _, c := range r.Chunks {
		w, stream := stdout, Stdout
		if c.Stream == Stderr {
			w, stream = stderr, Stderr
		}
		if failed[stream] == nil {
			_, failed[stream] = w.Write(c.Data)
		}
	}
	return cmp.Or(failed[Stdout], failed[Stderr])
}

// recorder keeps the beginning of what is printed.
type recorder struct {
	mu      sync.Mutex
	room    int64
	chunks  []Chunk
	notKept int64
	failed  [Stderr + 1]error // what ended the handing on of each stream
	taken   bool
}

func (r *recorder) unwritable(s Stream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[s] != nil
}

func (r *recorder) giveUp(s Stream, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[s] = err
}

func (r *recorder) add(s Stream, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken {
		return
	}
	last := len(r.chunks) - 1
	joins := last >= 0 && r.chunks[last].Stream == s
	if !joins && len(r.chunks) == maxChunks {
		r.room = 0
	}
	keep := min(int64(len(data)), r.room)
	r.room -= keep
	if keep < int64(len(data)) {
		r.room = 0 // what follows a gap is not kept either
		r.notKept += int64(len(data)) - keep
	}
	switch {
	case keep == 0:
	case joins:
		r.chunks[last].Data = append(r.chunks[last].Data, data[:keep]...)
	default:
		r.chunks = append(r.chunks, Chunk{Stream: s, Data: append([]byte(nil), data[:keep]...)})
	}
}

// fill ends the recording and puts it into the result.
func (r *recorder) fill(res *Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
	res.Chunks, res.NotKept = r.chunks, r.notKept
	res.Unwritten = cmp.Or(r.failed[Stdout], r.failed[Stderr])
}
