package idemtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/idembolt/idem"
)

func keyChecks() []check {
	checks := []check{
		{name: "keys that differ in any byte do not share a record", run: keysApart},
		{name: "keys that differ in any byte can be deleted one by one", run: keysDeletedApart},
		{name: "invalid key with a slash in its scope does not reach a valid one", run: keysSlashInScope},
	}
	for _, k := range hostileKeys() {
		checks = append(checks, check{name: k.name + " is a key like any other", run: func(t *testing.T, s *subject) { keyLives(t, s, k.key) }})
	}
	for _, k := range invalidKeys() {
		checks = append(checks, check{name: k.name + " is refused", run: func(t *testing.T, s *subject) { keyRefused(t, s, k.key) }})
	}
	return checks
}

type namedKey struct {
	name string
	key  idem.Key
}

// hostileKeys are valid keys that trip over quoting, separators, wildcards,
// collations, normalisation and length limits.
func hostileKeys() []namedKey {
	return []namedKey{
		{"id of one byte", key("a")},
		{"id of 255 bytes", key(strings.Repeat("x", idem.MaxIDBytes))},
		{"id of 255 bytes of three-byte runes", key(strings.Repeat("鍵", idem.MaxIDBytes/3))},
		{"id with runes beyond the basic plane", key("\U0001F511\U0010FFFD")},
		{"id with combining runes and marks", key("e\u0301\u200d\u202e\ufeff\ufffd")},
		{"id with slashes", key("/a//b/")},
		{"id with dots", key("../../etc/passwd")},
		{"id with percent signs", key("100%%2F%00%s")},
		{"id with quotes and backslashes", key(`"a" 'b' ` + "`c`" + ` \d`)},
		{"id with SQL", key("'; DROP TABLE records; --")},
		{"id with wildcards", key("*?[a-z]_%")},
		{"id with braces", key("{a}:{b}")},
		{"id with spaces around it", key("  a  ")},
		{"id with line and paragraph separators", key("a\u2028b\u2029c")},
		{"scope of 128 bytes", idem.Key{Scope: strings.Repeat("s", idem.MaxScopeBytes), ID: "a"}},
		{"scope and id of the greatest length", idem.Key{Scope: strings.Repeat("s", idem.MaxScopeBytes), ID: strings.Repeat("x", idem.MaxIDBytes)}},
		{"scope of punctuation", idem.Key{Scope: "._:@-", ID: "a"}},
		{"scope of dots", idem.Key{Scope: "..", ID: "."}},
	}
}

// similarKeys are easily taken for each other.
func similarKeys() []idem.Key {
	return []idem.Key{
		{Scope: "a", ID: "b"}, {Scope: "a", ID: "b/c"}, {Scope: "a", ID: "/b"}, {Scope: "a", ID: "b/"},
		{Scope: "a:b", ID: "c"}, {Scope: "a", ID: "b:c"}, {Scope: "a.b", ID: "c"}, {Scope: "ab", ID: "c"}, {Scope: "a", ID: "bc"},
		{Scope: "A", ID: "b"}, {Scope: "a", ID: "B"},
		{Scope: "a", ID: " b"}, {Scope: "a", ID: "b "},
		{Scope: "a", ID: "\u00e9"}, {Scope: "a", ID: "e\u0301"}, {Scope: "a", ID: "e"},
		{Scope: "a", ID: "%62"}, {Scope: "a", ID: `\b`}, {Scope: "a", ID: "%"}, {Scope: "a", ID: "_"}, {Scope: "a", ID: "*"},
		{Scope: "a", ID: "1"}, {Scope: "a", ID: "01"}, {Scope: "a", ID: "1.0"},
		{Scope: "a", ID: "null"}, {Scope: "a", ID: "NULL"},
	}
}

func invalidKeys() []namedKey {
	return []namedKey{
		{"zero key", idem.Key{}},
		{"empty scope", idem.Key{ID: "a"}},
		{"empty id", idem.Key{Scope: "a"}},
		{"scope of 129 bytes", idem.Key{Scope: strings.Repeat("s", idem.MaxScopeBytes+1), ID: "a"}},
		{"id of 256 bytes", key(strings.Repeat("x", idem.MaxIDBytes+1))},
		{"scope with a slash", idem.Key{Scope: "a/b", ID: "c"}},
		{"scope with a space", idem.Key{Scope: "a b", ID: "c"}},
		{"scope with a letter beyond ASCII", idem.Key{Scope: "ä", ID: "c"}},
		{"id that is not UTF-8", key("a\xff")},
		{"id with a zero byte", key("a\x00b")},
		{"id with a line break", key("a\nb")},
		{"id with a control rune beyond ASCII", key("a\u0085b")},
	}
}

func keyLives(t *testing.T, s *subject, k idem.Key) {
	s.wantAbsent(t, k)
	rec := s.create(t, s.completedAt(k))
	s.wantRecord(t, rec)
	rec = s.swap(t, rec.Version, withValue(s.completedAt(k), "new"))
	s.wantRecord(t, rec)
	s.wantKeys(t, idem.Query{}, k.String())
	s.wantKeys(t, idem.Query{Prefix: k.String()}, k.String())
	s.wantKeys(t, idem.Query{After: k.String()})
	s.remove(t, rec)
	s.wantEmpty(t)
}

func keysApart(t *testing.T, s *subject) {
	var stored []idem.Record
	for _, k := range similarKeys() {
		stored = append(stored, s.create(t, withValue(s.completedAt(k), k.String())))
	}
	for _, rec := range stored {
		s.wantRecord(t, rec)
	}
}

func keysDeletedApart(t *testing.T, s *subject) {
	var stored []idem.Record
	for _, k := range similarKeys() {
		stored = append(stored, s.completedAt(k))
	}
	s.seed(t, stored...)
	for i, rec := range stored {
		current, err := s.Get(t.Context(), rec.Key)
		if err != nil {
			t.Fatalf("Get(%q) = %v after the keys of %v were deleted, want the record", rec.Key, err, stored[:i])
		}
		s.remove(t, current)
		s.wantAbsent(t, rec.Key)
	}
	s.wantEmpty(t)
}

// An invalid key can have the text form of a valid one.
func keysSlashInScope(t *testing.T, s *subject) {
	valid := s.create(t, s.completedAt(idem.Key{Scope: "a", ID: "b/c"}))
	invalid := idem.Key{Scope: "a/b", ID: "c"}
	if got, err := s.Get(t.Context(), invalid); !errors.Is(err, idem.ErrInvalidKey) {
		t.Errorf("Get(%#v) = %s, want ErrInvalidKey", invalid, outcome(got, err))
	}
	s.wantDelete(t, invalid, valid.Version, idem.ErrInvalidKey)
	s.wantRecord(t, valid)
}

func keyRefused(t *testing.T, s *subject, k idem.Key) {
	got, err := s.Create(t.Context(), s.completedAt(k))
	if !errors.Is(err, idem.ErrInvalidKey) {
		t.Errorf("Create(%#v) = %s, want ErrInvalidKey", k, outcome(got, err))
	}
	got, err = s.Swap(t.Context(), 1, s.completedAt(k))
	if !errors.Is(err, idem.ErrInvalidKey) {
		t.Errorf("Swap(%#v) = %s, want ErrInvalidKey", k, outcome(got, err))
	}
	got, err = s.Get(t.Context(), k)
	if !errors.Is(err, idem.ErrInvalidKey) {
		t.Errorf("Get(%#v) = %s, want ErrInvalidKey", k, outcome(got, err))
	}
	s.wantDelete(t, k, 1, idem.ErrInvalidKey)
	s.wantEmpty(t)
}
