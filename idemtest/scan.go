package idemtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/idembolt/idem"
)

func scanChecks() []check {
	return []check{
		{name: "empty store yields nothing", run: func(t *testing.T, s *subject) { s.wantKeys(t, idem.Query{}) }},
		{name: "records come in byte order of their text form", run: scanOrder},
		{name: "records come as Get returns them", run: scanRecords},
		{name: "many records all come, in order, once", run: scanMany},
		{name: "deleted records do not come", run: scanDeleted},
		{name: "loop that breaks early leaves the store usable", run: scanBreak},
		{name: "loop body may call the store", overlaps: true, run: scanReentrant},
		{name: "records that stay come once while others come and go", overlaps: true, run: scanChanging},
		{name: "context that ends under way never makes a short list look complete", run: scanCancelled},
	}
}

// orderedKeys are in byte order of their text form, which is not the order of
// (scope, id), of a locale, or of case-folded text.
func orderedKeys() []idem.Key {
	return []idem.Key{
		{Scope: "A", ID: "z"},
		{Scope: "B", ID: "a"},
		{Scope: "a-b", ID: "a"}, // '-' and '.' sort before '/', ':' and digits after
		{Scope: "a.b", ID: "a"},
		{Scope: "a", ID: " "},
		{Scope: "a", ID: "/"},
		{Scope: "a", ID: "1"},
		{Scope: "a", ID: "10"},
		{Scope: "a", ID: "2"},
		{Scope: "a", ID: "B"},
		{Scope: "a", ID: "b"},
		{Scope: "a", ID: "b/c"},
		{Scope: "a", ID: "ba"},
		{Scope: "a", ID: "z"},
		{Scope: "a", ID: "\u00e4"},
		{Scope: "a", ID: "\u65e5"},
		{Scope: "a", ID: "\uffff"},
		{Scope: "a", ID: "\U00010000"}, // after U+FFFF in UTF-8, before it in UTF-16
		{Scope: "a0", ID: "a"},
		{Scope: "a:b", ID: "a"},
		{Scope: "b", ID: "a"},
	}
}

func texts(keys []idem.Key) []string {
	var all []string
	for _, k := range keys {
		all = append(all, k.String())
	}
	return all
}

// seedKeys stores a record under each key, not in their order.
func (s *subject) seedKeys(t *testing.T, keys []idem.Key) {
	t.Helper()
	var recs []idem.Record
	for _, k := range slices.Backward(keys) {
		recs = append(recs, s.completedAt(k))
	}
	s.seed(t, recs...)
}

// numbered makes n keys in order.
func numbered(n int) []idem.Key {
	var keys []idem.Key
	for i := range n {
		keys = append(keys, key(fmt.Sprintf("k%04d", i)))
	}
	return keys
}

func scanOrder(t *testing.T, s *subject) {
	s.seedKeys(t, orderedKeys())
	s.wantKeys(t, idem.Query{}, texts(orderedKeys())...)
}

func scanRecords(t *testing.T, s *subject) {
	want := []idem.Record{s.create(t, s.full("a")), s.create(t, s.completed("b")), s.create(t, s.processing("c"))}
	got := s.scan(t, idem.Query{})
	if len(got) != len(want) {
		t.Fatalf("Scan yielded %d records, want %d", len(got), len(want))
	}
	for i := range want {
		if d := diff(got[i], want[i]); d != "" {
			t.Errorf("Scan yielded for %q: %s", want[i].Key, d)
		}
	}
}

func scanMany(t *testing.T, s *subject) {
	keys := numbered(260)
	s.seedKeys(t, keys)
	s.wantKeys(t, idem.Query{}, texts(keys)...)
}

func scanDeleted(t *testing.T, s *subject) {
	s.create(t, s.completed("a"))
	s.remove(t, s.create(t, s.completed("b")))
	s.create(t, s.completed("c"))
	s.wantKeys(t, idem.Query{Expired: true}, scope+"/a", scope+"/c")
}

func scanBreak(t *testing.T, s *subject) {
	s.seedKeys(t, numbered(5))
	for range 3 {
		for rec, err := range s.Scan(t.Context(), idem.Query{}) {
			if err != nil || rec.Key != key("k0000") {
				t.Errorf("Scan yielded first %s, want %q", outcome(rec, err), key("k0000"))
			}
			break
		}
	}
	s.create(t, s.completed("k0005"))
	s.wantKeys(t, idem.Query{}, texts(numbered(6))...)
}

func scanReentrant(t *testing.T, s *subject) {
	s.seedKeys(t, numbered(4))
	n := 0
	for rec, err := range s.Scan(t.Context(), idem.Query{}) {
		if err != nil {
			t.Fatalf("Scan yielded %s, want no error", outcome(rec, err))
		}
		s.wantRecord(t, rec)
		rec = s.swap(t, rec.Version, s.processing(rec.Key.ID))
		for range s.Scan(t.Context(), idem.Query{}) {
			break
		}
		s.remove(t, rec)
		n++
	}
	if n != 4 {
		t.Errorf("Scan yielded %d records while the loop deleted each after it came, want 4", n)
	}
	s.wantEmpty(t)
}

// scanChanging deletes, creates and swaps around a running scan.
func scanChanging(t *testing.T, s *subject) {
	stay := numbered(20)
	var around []idem.Record
	for _, k := range stay {
		around = append(around, s.completed(k.ID+"-goes"))
	}
	s.seedKeys(t, stay)
	s.seed(t, around...)
	var got []string
	last, i := "", 0
	for rec, err := range s.Scan(t.Context(), idem.Query{}) {
		if err != nil {
			t.Fatalf("Scan yielded %s, want no error", outcome(rec, err))
		}
		text := rec.Key.String()
		if text <= last {
			t.Errorf("Scan yielded %q after %q, want ascending order", text, last)
		}
		last = text
		if want := "value of " + rec.Key.ID; string(rec.Value) != want {
			t.Errorf("Scan yielded %q with value %s, want %q", text, short(rec.Value), want)
		}
		if !strings.Contains(text, "-") {
			got = append(got, text)
		}
		if i < len(around) {
			goes := around[len(around)-1-i]
			if now, err := s.Get(t.Context(), goes.Key); err == nil {
				s.remove(t, now)
			}
			s.create(t, s.completed(fmt.Sprintf("k%04d-comes", i)))
		}
		i++
	}
	if d := diffKeys(got, texts(stay)); d != "" {
		t.Errorf("Scan while others came and went: %s", d)
	}
}

func scanCancelled(t *testing.T, s *subject) {
	keys := numbered(260)
	s.seedKeys(t, keys)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var end error
	for rec, err := range s.Scan(ctx, idem.Query{}) {
		if end != nil {
			t.Fatalf("Scan yielded %s after an error with a zero Key, want the end", outcome(rec, err))
		}
		if err == nil {
			n++
			cancel()
			continue
		}
		if end = err; rec.Key != (idem.Key{}) || !errors.Is(err, context.Canceled) {
			t.Errorf("Scan yielded %s when its context ended, want the zero Record and context.Canceled", outcome(rec, err))
		}
	}
	if n < len(keys) && end == nil {
		t.Errorf("Scan ended without an error after %d of %d records when its context ended, want context.Canceled", n, len(keys))
	}
}
