package idemtest

import (
	"strings"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

func fieldChecks() []check {
	checks := []check{
		{name: "every field comes back from every method", run: fieldsRoundTrip},
		{name: "fields that are not set stay so", run: fieldsZero},
		{name: "fields of an old version do not show through in the new one", run: fieldsReplaced},
		{name: "texts may hold any bytes", run: fieldsBytes},
		{name: "texts may have their greatest length", run: fieldsLongest},
		{name: "times keep every microsecond", run: fieldsMicroseconds},
		{name: "expiry may be as far away as the longest retention", run: fieldsFarExpiry},
		{name: "fingerprint of many parts comes back", run: fieldsFingerprint},
		{name: "counts of replays given by a caller are not stored", run: fieldsCounts},
	}
	for _, state := range idem.States() {
		checks = append(checks, check{name: state.String() + " record comes back", run: func(t *testing.T, s *subject) {
			rec := s.full("a")
			if rec.State = state; state != idem.Processing {
				rec.LeaseUntil = time.Time{}
			}
			s.wantRecord(t, s.create(t, rec))
		}})
	}
	return checks
}

// full is a record in which every field is set.
func (s *subject) full(id string) idem.Record {
	now := s.now().Truncate(time.Second)
	fp, err := idem.NewFingerprint([]byte("0123456789abcdef"), idem.Parts{{Name: "body", Data: []byte("b")}, {Name: "route", Data: []byte("r")}})
	if err != nil {
		panic(err) // the parts are valid
	}
	return idem.Record{
		Key: key(id), State: idem.Processing, Fingerprint: fp, Kind: "http", Owner: "r:0af3#77", Attempt: 3,
		TraceID:   "4bf92f3577b34da6a3ce929d0e0e4736",
		CreatedAt: now.Add(-3*time.Minute + 1*time.Microsecond), StartedAt: now.Add(-2*time.Minute + 20*time.Microsecond),
		UpdatedAt: now.Add(-1*time.Minute + 300*time.Microsecond), LeaseUntil: now.Add(time.Hour + 4001*time.Microsecond),
		ExpiresAt: now.Add(2*time.Hour + 50021*time.Microsecond),
		Steps:     []idem.StepResult{{Name: "reserve", Value: []byte("1")}, {Name: "größe", Value: []byte{}}},
		Value:     []byte(`{"receipt":"ü"}`), ValueOmitted: 1 << 33, Error: "declined: no funds", Note: "checked by hand",
	}
}

func fieldsRoundTrip(t *testing.T, s *subject) {
	want := s.create(t, s.full("a"))
	s.wantRecord(t, want)
	s.conflict(t, want)
	s.refuse(t, want.Key, want.Version+1, &want)
	for _, got := range s.scan(t, idem.Query{}) {
		if d := diff(got, want); d != "" {
			t.Errorf("Scan yielded for %q: %s", want.Key, d)
		}
	}
	s.wantRecord(t, s.swap(t, want.Version, want))
}

func fieldsZero(t *testing.T, s *subject) {
	s.wantRecord(t, s.create(t, idem.Record{Key: key("a"), State: idem.Completed, ExpiresAt: s.now().Add(time.Hour)}))
}

func fieldsReplaced(t *testing.T, s *subject) {
	rec := s.create(t, s.full("a"))
	bare := idem.Record{Key: rec.Key, State: idem.Interrupted, ExpiresAt: s.now().Add(time.Hour)}
	s.wantRecord(t, s.swap(t, rec.Version, bare))
}

// Errors and trace ids come from outside: nobody has checked their bytes.
func fieldsBytes(t *testing.T, s *subject) {
	for i, text := range []string{"\x00", "a\x00b", "\xff\xfe", "日本\xe6", "\r\n\t", `"'\`, "  "} {
		rec := s.full(string(rune('a' + i)))
		rec.Error, rec.TraceID, rec.Owner, rec.Kind, rec.Note = text, text, text, text, text
		s.wantRecord(t, s.create(t, rec))
	}
}

func fieldsLongest(t *testing.T, s *subject) {
	rec := s.full("a")
	for _, limit := range textLimits() {
		limit.set(&rec, strings.Repeat("x", limit.bytes))
	}
	s.wantRecord(t, s.create(t, rec))
}

func fieldsMicroseconds(t *testing.T, s *subject) {
	rec := s.completed("a")
	day := rec.CreatedAt.Truncate(time.Second)
	for _, us := range []time.Duration{0, 1, 10, 123_456, 500_000, 999_999} {
		rec.CreatedAt, rec.StartedAt = day.Add(us*time.Microsecond), day.Add((999_999-us)*time.Microsecond)
		rec.UpdatedAt = rec.CreatedAt
		rec.ExpiresAt = day.Add(time.Hour + us*time.Microsecond)
		if rec.Version == 0 {
			rec = s.create(t, rec)
		} else {
			rec = s.swap(t, rec.Version, rec)
		}
		s.wantRecord(t, rec)
	}
}

func fieldsFarExpiry(t *testing.T, s *subject) {
	rec := s.processing("a")
	rec.LeaseUntil = rec.CreatedAt.Add(idem.MaxRetention)
	rec.ExpiresAt = rec.CreatedAt.Add(2 * idem.MaxRetention)
	s.wantRecord(t, s.create(t, rec))
}

func fieldsFingerprint(t *testing.T, s *subject) {
	var parts idem.Parts
	for i := range 64 {
		name := strings.Repeat(string(rune('0'+i)), 1+i)
		parts = append(parts, idem.Part{Name: name, Data: []byte(name)})
	}
	fp, err := idem.NewFingerprint([]byte("0123456789abcdef"), parts)
	if err != nil {
		t.Fatalf("NewFingerprint = %v, want 64 parts to be allowed", err)
	}
	rec := s.completed("a")
	rec.Fingerprint = fp
	rec = s.create(t, rec)
	s.wantRecord(t, rec)
	got, err := s.Get(t.Context(), rec.Key)
	if d := got.Fingerprint.Diff(fp); err != nil || len(d) > 0 {
		t.Errorf("Get(%q) = a fingerprint that differs in parts %q, error %v, want none", rec.Key, d, err)
	}
}

func fieldsCounts(t *testing.T, s *subject) {
	rec := s.completed("a")
	rec.Replays, rec.LastReplayAt, rec.Mismatches, rec.DistinctMismatches = 7, rec.CreatedAt, 6, 5
	s.create(t, rec)
	got, err := s.Get(t.Context(), rec.Key)
	if err != nil || got.Replays != 0 || !got.LastReplayAt.IsZero() || got.Mismatches != 0 || got.DistinctMismatches != 0 {
		t.Errorf("Get(%q) = %d replays, last %v, %d mismatches, %d distinct, error %v, want none: the record was never replayed",
			rec.Key, got.Replays, got.LastReplayAt, got.Mismatches, got.DistinctMismatches, err)
	}
}
