// Package journal is a write-ahead log of two preallocated segments in one file.
// It makes a batch of changes durable with one sequential write and one
// fdatasync, where a B+ tree needs scattered pages and two syncs.
//
// The package knows batches and segments; what is in a batch, and when a
// segment's batches are safely elsewhere, is the caller's business. The layout
// is described in docs/format.md.
//
// # Crash model
//
// After a crash any subset of the sectors written since the last sync may be on
// disk, and the others may hold anything. A batch is written to sectors of its
// own, after the one before it was synced, and carries a checksum over all of
// it. So a batch that does not check out is the torn end of the log if no later
// batch does, and damage otherwise.
package journal

import (
	"errors"
	"fmt"
	"os"

	"github.com/idembolt/idem/internal/fileid"
)

// Errors.
var (
	// ErrCorrupt: batches that were synced are damaged.
	ErrCorrupt = errors.New("journal is damaged")
	// ErrForeign: the journal does not belong to the store, or does not continue
	// the state that the store is in.
	ErrForeign = errors.New("journal does not continue this store")
	// ErrFormat: written by another build.
	ErrFormat = errors.New("unknown journal format")
	// ErrSegmentFull: the batch does not fit into the rest of the segment.
	// Nothing was written; Switch makes room.
	ErrSegmentFull = errors.New("journal segment is full")
)

// sectorSize is the unit that a disk writes whole or not at all. Batches begin
// on its boundary, so a later write never touches a synced batch's sectors.
const sectorSize = 512

// Config names the store that a journal belongs to.
type Config struct {
	// Store is the id of the store.
	Store [16]byte
	// SegmentBytes is the size of each of the two segments, a multiple of 4096.
	SegmentBytes int64
	// Sync makes what was written to the file durable. Nil means fdatasync.
	Sync func(*os.File) error
	// WriteAt writes to the file. Nil means that of the file. It is the seam for
	// tests of failing, torn and lost writes.
	WriteAt func(f *os.File, b []byte, off int64) (int, error)

	seed uint32 // of the batches' checksums
}

func (c Config) withDefaults() Config {
	if c.Sync == nil {
		c.Sync = fdatasync
	}
	if c.WriteAt == nil {
		c.WriteAt = (*os.File).WriteAt
	}
	return c
}

// Journal is open for appending. It is not safe for concurrent use.
type Journal struct {
	file   *os.File
	opened fileid.File
	path   string
	config Config
	buf    []byte

	active     int    // index of the segment that is written
	generation uint64 // of that segment
	sequence   uint64 // of the last batch
	offset     int64  // within that segment, where the next batch goes
}

// Path returns the path of the file.
func (j *Journal) Path() string { return j.path }

// CheckIdentity returns an error if the path does not name the open file any
// more: what is written to it would be lost with the process.
func (j *Journal) CheckIdentity() error {
	now, err := fileid.At(j.path)
	if err != nil {
		return fmt.Errorf("the journal was removed: %w", err)
	}
	if !now.Same(j.opened) {
		return errors.New("the journal was replaced by another file")
	}
	return nil
}

// Room returns how many bytes are left in the segment that is written.
func (j *Journal) Room() int64 { return j.config.SegmentBytes - j.offset }

// Generation returns the generation of the segment that is written. Generations
// count up by one with every Switch.
func (j *Journal) Generation() uint64 { return j.generation }

// segmentStart is the offset of a segment in the file.
func (j *Journal) segmentStart(i int) int64 { return headerSize + int64(i)*j.config.SegmentBytes }

// Append makes a batch durable. On ErrSegmentFull nothing was written. Any other
// error leaves it open whether the batch is on disk, and the journal must not be
// used any more.
func (j *Journal) Append(b Batch) error {
	b.generation, b.sequence = j.generation, j.sequence+1
	j.buf = b.encode(j.buf[:0], j.config.seed)
	if j.offset+int64(len(j.buf)) > j.config.SegmentBytes {
		return ErrSegmentFull
	}
	if _, err := j.config.WriteAt(j.file, j.buf, j.segmentStart(j.active)+j.offset); err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	if err := j.config.Sync(j.file); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	j.offset += int64(len(j.buf))
	j.sequence++
	return nil
}

// Switch goes on in the other segment, whose batches are overwritten from now
// on: the caller has made sure that they are safely elsewhere.
func (j *Journal) Switch() {
	j.active, j.generation, j.offset = 1-j.active, j.generation+1, 0
}

// Close closes the file and leaves it in place.
func (j *Journal) Close() error { return j.file.Close() }
