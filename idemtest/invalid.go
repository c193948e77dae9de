package idemtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

// textLimit is the greatest length of one text field, as Record documents it.
type textLimit struct {
	name  string
	bytes int
	set   func(r *idem.Record, text string)
}

func textLimits() []textLimit {
	return []textLimit{
		{"kind", 32, func(r *idem.Record, text string) { r.Kind = text }},
		{"owner", 256, func(r *idem.Record, text string) { r.Owner = text }},
		{"trace id", 128, func(r *idem.Record, text string) { r.TraceID = text }},
		{"error", 4 << 10, func(r *idem.Record, text string) { r.Error = text }},
		{"note", 1 << 10, func(r *idem.Record, text string) { r.Note = text }},
	}
}

// invalidChecks are about records that break a limit: ErrInvalidRecord, and
// nothing is written, so that no store keeps what another would refuse.
func invalidChecks() []check {
	flaws := []struct {
		name  string
		spoil func(r *idem.Record)
	}{
		{"record without a state", func(r *idem.Record) { r.State = 0 }},
		{"record with an unknown state", func(r *idem.Record) { r.State = idem.Interrupted + 1 }},
		{"record without an expiry", func(r *idem.Record) { r.ExpiresAt = time.Time{} }},
		{"Processing record without a lease", func(r *idem.Record) { r.State, r.LeaseUntil = idem.Processing, time.Time{} }},
		{"negative attempt number", func(r *idem.Record) { r.Attempt = -1 }},
		{"value of MaxValueBytes + 1", func(r *idem.Record) { r.Value = make([]byte, idem.MaxValueBytes+1) }},
	}
	for _, limit := range textLimits() {
		flaws = append(flaws, struct {
			name  string
			spoil func(r *idem.Record)
		}{"too long " + limit.name, func(r *idem.Record) { limit.set(r, strings.Repeat("x", limit.bytes+1)) }})
	}
	var checks []check
	for _, flaw := range flaws {
		checks = append(checks,
			check{name: flaw.name + " is refused by Create", run: func(t *testing.T, s *subject) { invalidCreate(t, s, flaw.spoil) }},
			check{name: flaw.name + " is refused by Swap", run: func(t *testing.T, s *subject) { invalidSwap(t, s, flaw.spoil) }},
		)
	}
	return checks
}

func invalidCreate(t *testing.T, s *subject, spoil func(*idem.Record)) {
	rec := s.completed("a")
	spoil(&rec)
	got, err := s.Create(t.Context(), rec)
	if !errors.Is(err, idem.ErrInvalidRecord) {
		t.Errorf("Create(%q) = %s, want ErrInvalidRecord", rec.Key, outcome(got, err))
	}
	s.wantEmpty(t)
}

func invalidSwap(t *testing.T, s *subject, spoil func(*idem.Record)) {
	current := s.create(t, s.processing("a"))
	rec := s.completed("a")
	spoil(&rec)
	got, err := s.Swap(t.Context(), current.Version, rec)
	if !errors.Is(err, idem.ErrInvalidRecord) {
		t.Errorf("Swap(%q) = %s, want ErrInvalidRecord", rec.Key, outcome(got, err))
	}
	s.wantRecord(t, current)
}
