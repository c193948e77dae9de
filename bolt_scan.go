package idem

import (
	"context"
	"iter"
	"strings"
)

// scanPageSize and scanPageBytes are how many records and bytes of values a scan
// reads in one transaction, so that no reader keeps pages from being reused for
// long, or holds many large values.
const (
	scanPageSize  = 256
	scanPageBytes = 1 << 20
)

// Scan implements Store.
func (s *BoltStore) Scan(ctx context.Context, q Query) iter.Seq2[Record, error] {
	return scanPages(q, func(after string) (scannedPage, error) { return s.scanPage(ctx, q, after) })
}

// scanPages yields page after page until one is the last.
func scanPages(q Query, read func(after string) (scannedPage, error)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for after, more := q.After, true; more; {
			page, err := read(after)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, found := range page.records {
				if found.show && !yield(found.rec, found.err) {
					return
				}
				after = found.text
			}
			more = page.more
		}
	}
}

// scannedPage is what one transaction has read.
type scannedPage struct {
	records []scanned
	more    bool // it ended because it was full
}

// scanned is one record of a page, or what kept it from being read.
type scanned struct {
	text string
	rec  Record
	err  error
	show bool
}

func (s *BoltStore) scanPage(ctx context.Context, q Query, after string) (scannedPage, error) {
	if err := s.enter(ctx); err != nil {
		return scannedPage{}, err
	}
	defer s.mu.RUnlock()
	var page scannedPage
	bytes, now := 0, s.clock.Now()
	err := s.engine.scan([]byte(q.Prefix), []byte(after), func(key, enc []byte) bool {
		found := scanned{text: string(key), show: true}
		found.rec, found.err = decodeRecord(key, enc, !q.OmitValues)
		if found.err != nil {
			found.rec.Key.Scope, found.rec.Key.ID, _ = strings.Cut(found.text, "/")
		} else {
			found.show = q.Expired || !s.clock.expired(&found.rec, now)
		}
		page.records = append(page.records, found)
		bytes += len(found.rec.Value)
		page.more = len(page.records) == scanPageSize || bytes >= scanPageBytes
		return !page.more
	})
	if err == nil {
		keys := make([]string, len(page.records))
		for i := range keys {
			keys[i] = page.records[i].text
		}
		err = s.annotate(keys, func(i int) *Record { return &page.records[i].rec })
	}
	return page, s.readError(err)
}
