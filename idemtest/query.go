package idemtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

func queryChecks() []check {
	return []check{
		{name: "Prefix selects keys that begin with it", run: queryPrefix},
		{name: "After skips keys up to and including it", run: queryAfter},
		{name: "After need not be a key that is there", run: queryAfterGap},
		{name: "Prefix and After work together", run: queryPrefixAfter},
		{name: "pages by After show every record once", run: queryPages},
		{name: "expired records do not come unless asked for", run: queryLive},
		{name: "Expired shows expired records in their place", keepsExpired: true, run: queryExpired},
		{name: "Expired shows a record that was swapped to its end", keepsExpired: true, run: queryExpiredSwap},
		{name: "Expired does not show what was deleted or replaced", run: queryExpiredGone},
		{name: "OmitValues leaves out the value and nothing else", run: queryOmitValues},
	}
}

// filter is what a query must select of the keys.
func filter(keys []string, q idem.Query) []string {
	var selected []string
	for _, k := range keys {
		if strings.HasPrefix(k, q.Prefix) && k > q.After {
			selected = append(selected, k)
		}
	}
	return selected
}

func queryPrefix(t *testing.T, s *subject) {
	keys := append(orderedKeys(), idem.Key{Scope: "p", ID: "100%"}, idem.Key{Scope: "p", ID: "100x"}, idem.Key{Scope: "p", ID: "[a]"}, idem.Key{Scope: "p", ID: "_"}, idem.Key{Scope: "p", ID: "a*"})
	s.seedKeys(t, keys)
	all := texts(keys)
	slices.Sort(all)
	for _, prefix := range []string{
		"", "a", "a/", "a/b", "a/b/", "a/z", "a-", "A", "b/a", "b/a/", "c", "/", "a/\xc3", "a/\u00e4",
		"p/100%", "p/_", "p/a*", "p/[a]", "p/[", "p/%", "p/*", strings.Repeat("z", 1000),
	} {
		q := idem.Query{Prefix: prefix}
		s.wantKeys(t, q, filter(all, q)...)
	}
}

func queryAfter(t *testing.T, s *subject) {
	s.seedKeys(t, orderedKeys())
	all := texts(orderedKeys())
	for i, text := range all {
		s.wantKeys(t, idem.Query{After: text}, all[i+1:]...)
	}
}

func queryAfterGap(t *testing.T, s *subject) {
	s.seedKeys(t, orderedKeys())
	all := texts(orderedKeys())
	for _, after := range []string{"!", "A", "a", "a/", "a/b/", "a/b/c/d", "a/b\x00", "a/\xff", "b", "b/a/", "zzz", "\xff\xff"} {
		q := idem.Query{After: after}
		s.wantKeys(t, q, filter(all, q)...)
	}
}

func queryPrefixAfter(t *testing.T, s *subject) {
	s.seedKeys(t, orderedKeys())
	all := texts(orderedKeys())
	for _, q := range []idem.Query{
		{Prefix: "a/", After: "A/z"},
		{Prefix: "a/", After: "a/"},
		{Prefix: "a/", After: "a/b"},
		{Prefix: "a/b", After: "a/b"},
		{Prefix: "a/b", After: "a/b/c"},
		{Prefix: "a/", After: "a/\U00010000"},
		{Prefix: "a/", After: "b"},
		{Prefix: "b", After: "a"},
	} {
		s.wantKeys(t, q, filter(all, q)...)
	}
}

func queryPages(t *testing.T, s *subject) {
	keys := numbered(50)
	s.seedKeys(t, keys)
	var got []string
	for after := ""; len(got) <= len(keys); {
		page := s.page(t, after, 7)
		got = append(got, page...)
		if len(page) < 7 {
			break
		}
		after = page[len(page)-1]
	}
	if d := diffKeys(got, texts(keys)); d != "" {
		t.Errorf("Scan in pages of 7: %s", d)
	}
}

func (s *subject) page(t *testing.T, after string, size int) []string {
	t.Helper()
	var page []string
	for rec, err := range s.Scan(t.Context(), idem.Query{After: after}) {
		if err != nil {
			t.Fatalf("Scan(After %q) yielded %s, want no error", after, outcome(rec, err))
		}
		if page = append(page, rec.Key.String()); len(page) == size {
			break
		}
	}
	return page
}

// mixed stores live and expired records in turn, and one that only its lease
// keeps alive.
func (s *subject) mixed(t *testing.T) {
	held := s.processing("f")
	held.ExpiresAt = held.CreatedAt.Add(-time.Hour)
	s.seed(t, s.completed("a"), s.expired("b", time.Hour), s.completed("c"), s.expired("d", time.Minute), s.processing("e"), held)
}

func queryLive(t *testing.T, s *subject) {
	s.mixed(t)
	s.wantKeys(t, idem.Query{}, scope+"/a", scope+"/c", scope+"/e", scope+"/f")
	s.wantKeys(t, idem.Query{Prefix: scope + "/b"})
	s.wantKeys(t, idem.Query{After: scope + "/c"}, scope+"/e", scope+"/f")
}

func queryExpired(t *testing.T, s *subject) {
	s.mixed(t)
	s.wantKeys(t, idem.Query{Expired: true}, scope+"/a", scope+"/b", scope+"/c", scope+"/d", scope+"/e", scope+"/f")
	s.wantKeys(t, idem.Query{Expired: true, Prefix: scope + "/b"}, scope+"/b")
	s.wantKeys(t, idem.Query{Expired: true, After: scope + "/c"}, scope+"/d", scope+"/e", scope+"/f")
}

func queryExpiredSwap(t *testing.T, s *subject) {
	rec := s.create(t, s.completed("a"))
	want := s.swap(t, rec.Version, s.expired("a", time.Hour))
	for _, got := range s.scan(t, idem.Query{Expired: true}) {
		if d := diff(got, want); d != "" {
			t.Errorf("Scan yielded for %q: %s", want.Key, d)
		}
		return
	}
	t.Errorf("Scan(Expired) yielded nothing, want the expired record %q", want.Key)
}

func queryExpiredGone(t *testing.T, s *subject) {
	s.remove(t, s.create(t, s.completed("a")))
	s.create(t, s.expired("b", time.Hour))
	want := s.create(t, withValue(s.completed("b"), "new"))
	got := s.scan(t, idem.Query{Expired: true})
	if len(got) != 1 {
		t.Fatalf("Scan(Expired) yielded %d records, want 1: one was deleted, one replaced", len(got))
	}
	if d := diff(got[0], want); d != "" {
		t.Errorf("Scan yielded for %q: %s", want.Key, d)
	}
}

func queryOmitValues(t *testing.T, s *subject) {
	full, empty := s.create(t, s.full("a")), s.completed("b")
	empty.Value = []byte{}
	empty = s.create(t, empty)
	got := s.scan(t, idem.Query{OmitValues: true})
	if len(got) != 2 {
		t.Fatalf("Scan(OmitValues) yielded %d records, want 2", len(got))
	}
	for i, want := range []idem.Record{full, empty} {
		want.Value = nil
		if d := diff(got[i], want); d != "" {
			t.Errorf("Scan(OmitValues) yielded for %q: %s", want.Key, d)
		}
	}
	s.wantRecord(t, full)
	s.wantRecord(t, empty)
}
