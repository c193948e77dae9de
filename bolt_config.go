package idem

import (
	"fmt"
	"time"

	"github.com/idembolt/idem/internal/journal"
)

// BoltConfig configures a BoltStore. The zero value is a good default for a
// service.
type BoltConfig struct {
	// LockTimeout is how long opening waits while another process holds the
	// file. 0 means 5 seconds; negative means to try once.
	LockTimeout time.Duration
	// CacheBytes bounds the memory for finished records. 0 means 32 MiB;
	// negative means no cache.
	CacheBytes int64
	// MaxRecords refuses new keys with ErrFull from this number of records on.
	// 0 means no limit.
	MaxRecords int64
	// MaxBytes refuses new keys with ErrFull when this much of the file is in
	// use. Attempts that were let in may still finish, so the file can grow
	// somewhat beyond it. 0 means no limit.
	MaxBytes int64
	// Grace is how long after an open records stay that ran out while no service
	// had the file open, so that clients which could not retry then still can.
	// 0 means 15 minutes; negative means none.
	Grace time.Duration
	// ReadOnly opens for reading only, under a shared lock. The file must exist.
	ReadOnly bool
	// RequirePrivate refuses a file that other users can read or write with
	// ErrInsecure. Otherwise such a file is reported by Info.
	RequirePrivate bool

	// Visitor marks a short-lived holder: a tool that opens the file beside the
	// service that owns it. It is not up between two opens, so it knows no
	// downtime, does not use up the service's Grace, and its Expire leaves alone
	// what ran out while the service was down.
	Visitor bool

	// SegmentBytes is the size of each of the two segments of the journal beside
	// the file. A larger one merges less often; the memory for what is not merged
	// yet is a small multiple of it. 0 means 8 MiB; a small device can do with
	// 1 MiB. At least 64 KiB, rounded up to a multiple of 4 KiB.
	SegmentBytes int64

	// journalAfter is how many commits are made before a journal is begun.
	journalAfter int
	// wall replaces time.Now at opening, for tests of clock steps.
	wall func() time.Time
	// tap sees the open file and may change the journal's configuration, before
	// anything is recovered, for tests that record or fail writes.
	tap func(*boltEngine, *journal.Config)
	// engine wraps the engine after opening, for tests that inject faults.
	engine func(engine) engine
}

const (
	defaultLockTimeout = 5 * time.Second
	defaultCacheBytes  = 32 << 20
	defaultGrace       = 15 * time.Minute
)

func (c BoltConfig) withDefaults() (BoltConfig, error) {
	if c.MaxRecords < 0 || c.MaxBytes < 0 {
		return c, fmt.Errorf("bolt: MaxRecords and MaxBytes must not be negative")
	}
	if c.LockTimeout == 0 {
		c.LockTimeout = defaultLockTimeout
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = defaultCacheBytes
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = defaultSegmentBytes
	}
	if c.SegmentBytes < minSegmentBytes {
		return c, fmt.Errorf("bolt: SegmentBytes must be at least %d, it is %d", minSegmentBytes, c.SegmentBytes)
	}
	c.SegmentBytes = (c.SegmentBytes + 4095) / 4096 * 4096
	switch {
	case c.journalAfter == 0:
		c.journalAfter = journalAfter
	case c.journalAfter < 0:
		c.journalAfter = 0
	}
	if c.wall == nil {
		c.wall = time.Now
	}
	return c, nil
}
