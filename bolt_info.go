package idem

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	bolt "go.etcd.io/bbolt"
)

// BoltInfo describes a store and its file.
type BoltInfo struct {
	Path    string
	ID      string // random, made with the file
	Format  int
	Created time.Time
	Mode    fs.FileMode
	// FileBytes is the size of the file, UsedBytes what of it is in use, and
	// RecordBytes what the records take.
	FileBytes, UsedBytes, RecordBytes int64
	Records                           int64 // expired ones not yet removed included
	Version                           uint64
	Now                               time.Time // the store's time
	// Ahead is how far the store's time is ahead of the wall clock: more than
	// zero after the wall clock was set back.
	Ahead time.Duration
	// GraceUntil is until when records stay that ran out while the service was
	// down. Zero if there is no such time now.
	GraceUntil time.Time
	// Warnings are things a person should know, for instance a file that other
	// users can read.
	Warnings []string
}

// Info describes the store. See BoltInfo.
func (s *BoltStore) Info(ctx context.Context) (BoltInfo, error) {
	if err := s.enter(ctx); err != nil {
		return BoltInfo{}, err
	}
	defer s.mu.RUnlock()
	stat, err := s.handle.Stat()
	if err != nil {
		return BoltInfo{}, err
	}
	state, err := s.state()
	if err != nil {
		return BoltInfo{}, s.readError(err)
	}
	records, bytes := s.engine.totals()
	now := s.clock.Now()
	info := BoltInfo{
		Path: s.path, ID: hex.EncodeToString(s.file.id[:]), Format: fileFormat, Created: s.file.created,
		Mode: stat.Mode().Perm(), FileBytes: stat.Size(), UsedBytes: s.engine.used(), RecordBytes: bytes,
		Records: records, Version: state.version, Now: now, Ahead: max(0, now.Sub(s.config.wall()).Round(time.Second)),
	}
	if now.Before(s.clock.graceUntil) {
		info.GraceUntil = s.clock.graceUntil
	}
	if s.wideMode() {
		info.Warnings = append(info.Warnings, fmt.Sprintf("the file has mode %04o: other users can read or write it, make it 0600", stat.Mode().Perm()))
	}
	if info.Ahead > time.Minute {
		info.Warnings = append(info.Warnings, fmt.Sprintf("the store's time is %s ahead of the clock: the clock was set back", info.Ahead))
	}
	return info, nil
}

// state reads the totals as they are on disk.
func (s *BoltStore) state() (state storeState, err error) {
	err = guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) (err error) {
			_, state, err = readMeta(tx)
			return err
		})
	})
	return state, err
}

// HourCounts are the events of one hour.
type HourCounts struct {
	Hour     time.Time // its beginning, UTC
	Events   map[EventKind]uint64
	Rejected map[RejectReason]uint64 // EventRejected by reason
}

// History returns what happened in the last 14 days, oldest hour first. Hours in
// which nothing happened are left out. Counts that no commit has taken along
// yet are not included.
func (s *BoltStore) History(ctx context.Context) ([]HourCounts, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	var hours []HourCounts
	err := s.engine.history(func(hour int64, enc []byte) error {
		counts := make(hourCounts)
		if err := json.Unmarshal(enc, &counts); err != nil {
			return fmt.Errorf("%w: history of hour %d: %w", ErrCorrupt, hour, err)
		}
		hours = append(hours, counts.at(hour))
		return nil
	})
	return hours, s.readError(err)
}

// at splits the stored names. Those of later builds are passed over.
func (c hourCounts) at(hour int64) HourCounts {
	h := HourCounts{
		Hour:   time.Unix(hour*3600, 0).UTC(),
		Events: make(map[EventKind]uint64), Rejected: make(map[RejectReason]uint64),
	}
	for _, kind := range EventKinds() {
		if n := c[kind.String()]; n > 0 {
			h.Events[kind] = n
		}
	}
	for _, reason := range []RejectReason{RejectMissing, RejectNoScope, RejectTooLong, RejectCharset} {
		if n := c["rejected:"+string(reason)]; n > 0 {
			h.Rejected[reason] = n
		}
	}
	return h
}
