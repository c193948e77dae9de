package idemhttp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

const (
	// chunkBytes is the size of a chunk: small enough to hold one per request in
	// memory, large enough that their syncs cost less than the writing.
	chunkBytes   = 256 << 10
	chunkKind    = "http.chunk"
	chunkTimeout = 30 * time.Second // of one write; the client's context does not count
)

// chunks are the records that hold a response body which is too large for that of
// its key. They are written while the response is sent and found by the attempt
// that wrote them, so that one which lost its key cannot mix its own in. A crash
// leaves them to expire.
type chunks struct {
	store idem.Store
	key   idem.Key
	set   uint64 // version of the attempt
	keep  time.Duration
	limit int64 // of the body

	length   int64
	buf      []byte
	versions []uint64 // of the chunks written
	failed   bool     // the body is not kept
}

// newChunks returns where the response of an attempt goes if it is large, or nil.
func (m *middleware) newChunks(a *idem.Attempt) *chunks {
	if m.keep == Never || m.maxStored <= int64(m.maxResponse) {
		return nil
	}
	return &chunks{
		store: m.guard.Store(), key: a.Key(), set: a.Version(), limit: m.maxStored,
		// Longer than the record that names them, unless the handler outlasts its
		// context: then repeats are told that the response was not kept.
		keep: m.handlerTimeout + chunkTimeout + m.retention,
	}
}

// chunkKey names a chunk. No client can send this as a key: it is not ASCII.
func chunkKey(of idem.Key, set uint64, n int) idem.Key {
	return idem.Key{Scope: of.Scope, ID: fmt.Sprintf("%s%06d", chunkPrefix(of, set), n)}
}

func chunkPrefix(of idem.Key, set uint64) string {
	sum := sha256.Sum256([]byte(of.String())) // an id may be as long as a key allows
	return fmt.Sprintf("·%s·%d·", hex.EncodeToString(sum[:16]), set)
}

// add takes in the next bytes of the body. A body that cannot be stored is not an
// error of the response.
func (c *chunks) add(p []byte) {
	c.length += int64(len(p))
	if c.length > c.limit {
		c.discard()
	}
	for len(p) > 0 && !c.failed {
		n := min(len(p), chunkBytes-len(c.buf))
		c.buf, p = append(c.buf, p[:n]...), p[n:]
		if len(c.buf) == chunkBytes {
			c.flush()
		}
	}
}

func (c *chunks) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), chunkTimeout)
	defer cancel()
	now := idem.StoreNow(c.store)
	rec, err := c.store.Create(ctx, idem.Record{
		Key: chunkKey(c.key, c.set, len(c.versions)), State: idem.Completed, Kind: chunkKind, Attempt: 1,
		CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(c.keep), Value: c.buf,
	})
	if err != nil {
		c.discard()
		return
	}
	c.buf, c.versions = c.buf[:0], append(c.versions, rec.Version)
}

// finish writes the rest and returns how many chunks there are, or false if the
// body is not kept.
func (c *chunks) finish() (int, bool) {
	if len(c.buf) > 0 && !c.failed {
		c.flush()
	}
	return len(c.versions), !c.failed
}

// discard removes what was written, as far as that can be done now.
func (c *chunks) discard() {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), chunkTimeout)
	defer cancel()
	for n, version := range c.versions {
		if c.store.Delete(ctx, chunkKey(c.key, c.set, n), version) != nil {
			break // the rest expires too
		}
	}
	c.buf, c.versions, c.failed = nil, nil, true
}
