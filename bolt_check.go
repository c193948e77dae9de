package idem

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/idembolt/idem/internal/pagewalk"
)

// CheckArea is what a finding of Check is about.
type CheckArea string

// The areas that Check looks at, in this order.
const (
	CheckPages   CheckArea = "pages"
	CheckRecords CheckArea = "records"
	CheckIndex   CheckArea = "expiry index"
	CheckTotals  CheckArea = "totals"
)

// CheckAreas lists the areas in order.
func CheckAreas() []CheckArea { return []CheckArea{CheckPages, CheckRecords, CheckIndex, CheckTotals} }

// Finding is one thing that is wrong in a file.
type Finding struct {
	Area   CheckArea
	Key    string // text form of the key it is about, or ""
	Detail string
}

// CheckReport is the result of Check.
type CheckReport struct {
	Pages, Records, IndexEntries int
	// Leases counts Processing records, Overdue those of them whose lease is
	// over.
	Leases, Overdue int
	// Findings holds the first 1,000 findings, Problems the number of all.
	Findings []Finding
	Problems int
}

const maxFindings = 1000

func (r *CheckReport) add(area CheckArea, key []byte, format string, args ...any) {
	r.Problems++
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, Finding{Area: area, Key: string(key), Detail: fmt.Sprintf(format, args...)})
	}
}

// Check reads the whole file and reports what is wrong with its pages, records,
// expiry index and totals. It repairs nothing and takes time linear in the size
// of the file, in one read transaction: the store can be used meanwhile, but the
// file grows by what is written. The error says why the check could not be made;
// what is wrong in the file is in the report.
func (s *BoltStore) Check(ctx context.Context) (CheckReport, error) {
	var r CheckReport
	if err := s.enter(ctx); err != nil {
		return r, err
	}
	defer s.mu.RUnlock()
	err := s.engine.snapshot(func(tx *bolt.Tx, over []overlaid) error {
		if err := s.checkPages(tx, &r); err != nil || r.Problems > 0 {
			return err // reading records through damaged pages would tell nothing
		}
		if err := s.checkRecords(ctx, tx, over, &r); err != nil {
			return err
		}
		s.checkUnmerged(tx, over, &r)
		return nil
	})
	return r, s.readError(err)
}

// checkPages walks the pages of the transaction's own header. bbolt's check is
// not for files in use, and ends the process on some damage.
func (s *BoltStore) checkPages(tx *bolt.Tx, r *CheckReport) error {
	meta, err := pagewalk.ReadMeta(s.handle, uint64(tx.ID()))
	if err != nil {
		return err
	}
	r.Pages = int(meta.Pages)
	stat, err := s.handle.Stat()
	if err != nil {
		return err
	}
	_, err = pagewalk.Walk(s.handle, stat.Size(), meta, func(p pagewalk.Problem) bool {
		r.add(CheckPages, nil, "%v", p)
		return true
	})
	return err
}

func (s *BoltStore) checkRecords(ctx context.Context, tx *bolt.Tx, over []overlaid, r *CheckReport) error {
	_, state, err := readMeta(tx)
	if err != nil {
		r.add(CheckTotals, nil, "%v", err)
	}
	var total int64
	index, now := tx.Bucket(bucketExpiry), s.clock.Now()
	err = tx.Bucket(bucketRecords).ForEach(func(key, enc []byte) error {
		r.Records++
		total += int64(len(enc))
		rec, err := decodeRecord(key, enc, false)
		if err != nil {
			r.add(CheckRecords, key, "%v", err)
			return ctx.Err()
		}
		if rec.Version > state.version {
			r.add(CheckTotals, key, "its version %d is above the store's highest, %d", rec.Version, state.version)
		}
		if index.Get(expiryEntry(toMicros(rec.ExpiresAt), key)) == nil && !liesOver(over, key) {
			r.add(CheckIndex, key, "it has no entry and would never expire")
		}
		if rec.State == Processing {
			r.Leases++
			if now.After(rec.LeaseUntil) {
				r.Overdue++
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if int64(r.Records) != state.records || total != state.bytes {
		r.add(CheckTotals, nil, "%d records of %d bytes, but %d of %d are on the books", r.Records, total, state.records, state.bytes)
	}
	return s.checkIndex(ctx, tx, r)
}

// checkUnmerged checks the records of the journal and counts them in: those of
// the file that they replace are not records any more.
func (s *BoltStore) checkUnmerged(tx *bolt.Tx, over []overlaid, r *CheckReport) {
	now := s.clock.Now()
	lease := func(enc []byte, n int) {
		if enc == nil {
			return
		}
		r.Records += n
		if State(enc[1]) != Processing {
			return
		}
		r.Leases += n
		if toMicros(now) > int64(binary.BigEndian.Uint64(enc[24:])) {
			r.Overdue += n
		}
	}
	for _, o := range over {
		if _, err := decodeRecord([]byte(o.key), o.enc, false); o.enc != nil && err != nil {
			r.add(CheckRecords, []byte(o.key), "in the journal: %v", err)
			continue
		}
		if old := tx.Bucket(bucketRecords).Get([]byte(o.key)); len(old) >= recordHeaderSize {
			lease(old, -1)
		}
		lease(o.enc, 1)
	}
}

// liesOver reports whether the journal has the key. Its merge may have come to
// the record and not yet to the index.
func liesOver(over []overlaid, key []byte) bool {
	_, found := slices.BinarySearchFunc(over, string(key), func(o overlaid, key string) int { return strings.Compare(o.key, key) })
	return found
}

func (s *BoltStore) checkIndex(ctx context.Context, tx *bolt.Tx, r *CheckReport) error {
	records := tx.Bucket(bucketRecords)
	return tx.Bucket(bucketExpiry).ForEach(func(entry, _ []byte) error {
		r.IndexEntries++
		if len(entry) < 8 {
			r.add(CheckIndex, nil, "an entry has %d bytes", len(entry))
			return ctx.Err()
		}
		key := entry[8:]
		enc := records.Get(key)
		if len(enc) < recordHeaderSize || !bytes.Equal(enc[16:24], entry[:8]) {
			r.add(CheckIndex, key, "an entry for %s points at nothing", fromMicros(int64(binary.BigEndian.Uint64(entry))))
		}
		return ctx.Err()
	})
}
