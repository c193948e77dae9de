package idemhttp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"time"
)

// Why a body could not be taken in. Anything else is a failure of the client or
// its connection.
var (
	errBodyTooLarge = errors.New("body is over the limit")
	errSpool        = errors.New("body could not be spooled")
)

// spooled is a request body that was read to its end: in memory, or in a file
// if it is large. It must be closed.
type spooled struct {
	memory []byte
	file   *os.File // nil if the body is in memory
	size   int64
	sum    hash.Hash // of all of it; nil if the body is in memory
}

// spool reads the body. Up to memory bytes stay in memory; up to limit go to a
// file in dir that only this user can read.
func spool(r *http.Request, memory, limit int64, dir string) (*spooled, error) {
	limit = min(limit, math.MaxInt64-1) // one more is read to see that it is over
	if r.ContentLength > limit {
		return nil, errBodyTooLarge
	}
	if r.ContentLength == 0 || r.Body == nil {
		return &spooled{}, nil
	}
	memory = min(memory, limit)
	start, err := readStart(r.Body, r.ContentLength, memory+1)
	n := int64(len(start))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read body: %w", err)
	case n <= memory:
		return &spooled{memory: start, size: n}, nil
	case n > limit:
		return nil, errBodyTooLarge
	}
	return spoolFile(io.MultiReader(bytes.NewReader(start), r.Body), limit, dir)
}

// readStart reads until the body ends or most bytes are there. The promised
// length is that of the request, -1 where it made none: who does not keep a
// promise should not hold much memory for it.
func readStart(body io.Reader, promised, most int64) ([]byte, error) {
	const unknown, trusted = 512, 8 << 10
	if promised < 0 {
		promised = unknown
	}
	b := make([]byte, 0, min(promised, trusted, most)+1) // one more, to meet the end without growing
	for {
		n, err := body.Read(b[len(b):min(int64(cap(b)), most)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF || err == nil && int64(len(b)) == most:
			return b, nil
		case err != nil:
			return nil, err
		case len(b) == cap(b):
			b = slices.Grow(b, len(b))
		}
	}
}

func spoolFile(body io.Reader, limit int64, dir string) (*spooled, error) {
	file, err := os.CreateTemp(dir, "idemhttp-*.body") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSpool, err)
	}
	s := &spooled{file: file, sum: sha256.New()}
	_ = os.Remove(file.Name()) // while it is open, so that a crash leaves nothing; where that fails Close does it
	to := &spoolWriter{file: file}
	s.size, err = io.Copy(io.MultiWriter(to, s.sum), io.LimitReader(body, limit+1))
	switch {
	case to.err != nil:
		err = fmt.Errorf("%w: %w", errSpool, to.err)
	case err != nil:
		err = fmt.Errorf("read body: %w", err)
	case s.size > limit:
		err = errBodyTooLarge
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// spoolWriter remembers its error, which io.Copy does not tell from the reader's.
type spoolWriter struct {
	file *os.File
	err  error
}

func (w *spoolWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// digest is the SHA-256 of the body.
func (s *spooled) digest() []byte {
	if s.sum != nil {
		return s.sum.Sum(nil)
	}
	sum := sha256.Sum256(s.memory)
	return sum[:]
}

// reader returns the body from its start, as a handler may read it.
func (s *spooled) reader() io.ReadCloser {
	switch {
	case s.size == 0:
		return http.NoBody
	case s.file == nil:
		return io.NopCloser(bytes.NewReader(s.memory))
	}
	return io.NopCloser(io.NewSectionReader(s.file, 0, s.size))
}

// close removes the file. Its errors concern nobody: the content was used.
func (s *spooled) close() {
	if s.file == nil {
		return
	}
	_ = s.file.Close()
	_ = os.Remove(s.file.Name())
	s.file = nil
}

// limitBodyTime ends the reading of the body after d, unless the server has a
// limit of its own, and reports whether it did. If so the limit must be taken
// back by unlimitBodyTime: a deadline that passes later would be taken for a
// client that hung up.
func limitBodyTime(w http.ResponseWriter, r *http.Request, d time.Duration) bool {
	if d == 0 || r.ContentLength == 0 {
		return false
	}
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout > 0 {
		return false
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(d)) == nil // not every writer can
}

func unlimitBodyTime(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// bodyProblem is the answer to a request whose body could not be taken in.
func bodyProblem(err error) *Problem {
	var tooLarge *http.MaxBytesError
	var network net.Error
	switch {
	case errors.Is(err, errBodyTooLarge), errors.As(err, &tooLarge):
		return &Problem{
			Type: ProblemBodyTooLarge, Title: "Request body too large", Status: http.StatusRequestEntityTooLarge,
			Detail: "The request body is larger than this operation accepts. Nothing was done.",
		}
	case errors.Is(err, errSpool):
		return unavailable()
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &network) && network.Timeout():
		return &Problem{
			Type: ProblemBodyTimeout, Title: "Request body came too slowly", Status: http.StatusRequestTimeout, Retryable: true,
			Detail: "The request body did not arrive in time. Nothing was done.",
		}
	}
	return &Problem{
		Type: ProblemBodyUnreadable, Title: "Request body unreadable", Status: http.StatusBadRequest, Retryable: true,
		Detail: "The request body could not be read to its end. Nothing was done.",
	}
}
