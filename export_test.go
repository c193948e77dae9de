package idem

import (
	"testing"
	"time"
)

// WithJournal makes a store begin its journal with the first commit and merge as
// often as it can.
func WithJournal(c BoltConfig) BoltConfig {
	c.journalAfter, c.SegmentBytes = -1, minSegmentBytes
	return c
}

// WithClock lets the wall clock be off when a store is opened.
func WithClock(c BoltConfig, step time.Duration) BoltConfig {
	c.wall = func() time.Time { return time.Now().Add(step) }
	return c
}

// WaitForMerge waits until no merge runs. Nobody may write meanwhile.
func WaitForMerge(s *BoltStore) error {
	if e, ok := s.engine.(*journalEngine); ok && e.merge != nil {
		return e.merge.wait()
	}
	return nil
}

// MemoryDir is a directory in memory, where there is one.
func MemoryDir(t *testing.T) string { return crashDir(t) }

// RaceSlowdown is 1 without the race detector.
const RaceSlowdown = raceSlowdown
