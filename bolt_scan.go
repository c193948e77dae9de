package idem

import (
	"context"
	"iter"
	"strings"
)

// scanPageSize is how many records a scan reads in one transaction, so that no
// reader keeps pages from being reused for long.
const scanPageSize = 256

// Scan implements Store.
func (s *BoltStore) Scan(ctx context.Context, q Query) iter.Seq2[Record, error] {
	return scanPages(q, func(after string) ([]scanned, error) { return s.scanPage(ctx, q, after) })
}

// scanPages yields page after page until one is not full.
func scanPages(q Query, read func(after string) ([]scanned, error)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for after := q.After; ; {
			page, err := read(after)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, found := range page {
				if found.show && !yield(found.rec, found.err) {
					return
				}
			}
			if len(page) < scanPageSize {
				return
			}
			after = page[len(page)-1].text
		}
	}
}

// scanned is one record of a page, or what kept it from being read.
type scanned struct {
	text string
	rec  Record
	err  error
	show bool
}

func (s *BoltStore) scanPage(ctx context.Context, q Query, after string) ([]scanned, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	var page []scanned
	now := s.clock.Now()
	err := s.engine.scan([]byte(q.Prefix), []byte(after), func(key, enc []byte) bool {
		found := scanned{text: string(key), show: true}
		found.rec, found.err = decodeRecord(key, enc, !q.OmitValues)
		if found.err != nil {
			found.rec.Key.Scope, found.rec.Key.ID, _ = strings.Cut(found.text, "/")
		} else {
			found.show = q.Expired || !s.clock.expired(&found.rec, now)
		}
		page = append(page, found)
		return len(page) < scanPageSize
	})
	if err == nil {
		keys := make([]string, len(page))
		for i := range page {
			keys[i] = page[i].text
		}
		err = s.annotate(keys, func(i int) *Record { return &page[i].rec })
	}
	return page, s.readError(err)
}
