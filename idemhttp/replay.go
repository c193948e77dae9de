package idemhttp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/idembolt/idem"
)

// replay answers from a finished record.
func (x *exchange) replay(ctx context.Context, rec idem.Record) Status {
	x.w.Header().Set(HeaderExpires, expiry(rec))
	var stored Response
	switch {
	case len(rec.Value) == 0 && rec.State == idem.Failed:
		return x.problem(failedProblem(), StatusReplayed)
	case len(rec.Value) == 0: // settled by hand, or too large with its headers
		return x.problem(notKeptProblem(nil), StatusReplayed)
	case stored.UnmarshalBinary(rec.Value) != nil:
		return x.problem(unreadableProblem(), StatusReplayed)
	case stored.Omitted == InChunks:
		return x.replayChunks(ctx, rec.Key, &stored)
	case stored.Omitted != Kept:
		return x.problem(notKeptProblem(&stored), StatusReplayed)
	}
	x.replayHeader(&stored, int64(len(stored.Body)))
	_, _ = x.w.Write(stored.Body) // a client that is gone cannot be told
	return StatusReplayed
}

func (x *exchange) replayHeader(r *Response, length int64) {
	h := x.w.Header()
	for name, values := range r.Header {
		h[name] = values
	}
	values := [...]string{string(StatusReplayed), "true"} // two slices of one allocation
	h[HeaderStatus], h[HeaderReplayed] = values[:1:1], values[1:]
	setLength(h, r.Status, length)
	x.w.WriteHeader(r.Status)
}

// replayChunks sends a body that is in records of its own, one after the other.
// That they are all there is looked at before: once the status is sent, nothing
// but a broken connection tells the client that the body is not whole.
func (x *exchange) replayChunks(ctx context.Context, key idem.Key, r *Response) Status {
	whole, err := x.m.hasChunks(ctx, key, r)
	switch {
	case err != nil:
		return x.problem(unavailable(), StatusIgnored)
	case !whole:
		return x.problem(notKeptProblem(r), StatusReplayed)
	}
	x.replayHeader(r, r.Length)
	switch err := x.m.copyChunks(ctx, x.w, key, r); {
	case errors.Is(err, errChunks):
		panic(http.ErrAbortHandler)
	case err != nil: // a client that is gone cannot be told
	}
	return StatusReplayed
}

// errChunks is the error for a body that cannot be read whole.
var errChunks = errors.New("stored response is not whole")

func chunkQuery(of idem.Key, r *Response) idem.Query {
	return idem.Query{Prefix: idem.Key{Scope: of.Scope, ID: chunkPrefix(of, r.ChunkSet)}.String()}
}

// hasChunks reports whether all chunks of a stored response are there.
func (m *middleware) hasChunks(ctx context.Context, of idem.Key, r *Response) (bool, error) {
	q, n := chunkQuery(of, r), 0
	q.OmitValues = true
	for _, err := range m.guard.Store().Scan(ctx, q) {
		switch {
		case errors.Is(err, idem.ErrCorrupt), errors.Is(err, idem.ErrFormat):
			return false, nil
		case err != nil:
			return false, err
		}
		n++
	}
	return n == r.Chunks, nil
}

// copyChunks writes the body to w. Its error matches errChunks unless it is w's.
// A scan reads page by page and leaves the store's cache alone.
func (m *middleware) copyChunks(ctx context.Context, w io.Writer, of idem.Key, r *Response) error {
	sum, left := sha256.New(), r.Length
	for rec, err := range m.guard.Store().Scan(ctx, chunkQuery(of, r)) {
		if err != nil {
			return fmt.Errorf("%w: %w", errChunks, err)
		}
		sum.Write(rec.Value)
		left -= int64(len(rec.Value))
		if left < 0 || left == 0 && [32]byte(sum.Sum(nil)) != r.SHA256 {
			return fmt.Errorf("%w: its hash is another", errChunks)
		}
		if _, err := w.Write(rec.Value); err != nil {
			return err
		}
	}
	if left > 0 {
		return fmt.Errorf("%w: %d bytes are missing", errChunks, left)
	}
	return nil
}
