package idemtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idembolt/idem"
)

// scope is that of all keys whose scope does not matter.
const scope = "idemtest"

func key(id string) idem.Key { return idem.Key{Scope: scope, ID: id} }

// completed is a finished record that lives for an hour.
func (s *subject) completed(id string) idem.Record { return s.completedAt(key(id)) }

func (s *subject) completedAt(key idem.Key) idem.Record {
	now := s.now()
	return idem.Record{
		Key: key, State: idem.Completed, Kind: "test", Owner: "idemtest", Attempt: 1,
		CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour),
		Value: []byte("value of " + key.ID),
	}
}

// processing is a claimed record whose lease runs for an hour.
func (s *subject) processing(id string) idem.Record {
	rec := s.completed(id)
	rec.State, rec.Value = idem.Processing, nil
	rec.LeaseUntil = rec.CreatedAt.Add(time.Hour)
	rec.ExpiresAt = rec.LeaseUntil.Add(time.Hour)
	return rec
}

// expired is a finished record whose time has been over for the given time.
func (s *subject) expired(id string, since time.Duration) idem.Record {
	rec := s.completed(id)
	rec.ExpiresAt = rec.CreatedAt.Add(-since)
	return rec
}

// expiring is a finished record whose time will be over soon.
func (s *subject) expiring(id string) idem.Record {
	rec := s.completed(id)
	rec.ExpiresAt = rec.CreatedAt.Add(soon)
	return rec
}

// withValue returns a copy of rec with another value.
func withValue(rec idem.Record, value string) idem.Record {
	rec.Value = []byte(value)
	return rec
}

// outcome says what a call returned.
func outcome(rec idem.Record, err error) string {
	if rec.Version == 0 && rec.Key == (idem.Key{}) {
		return fmt.Sprintf("no record, error %v", err)
	}
	return fmt.Sprintf("%s record %q version %d value %s, error %v", rec.State, rec.Key, rec.Version, short(rec.Value), err)
}

// short shows a value without flooding the log.
func short(value []byte) string {
	switch {
	case value == nil:
		return "nil"
	case len(value) <= 40:
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%q… (%d bytes)", value[:40], len(value))
}

// diff says how a record differs from the one that is wanted, or "". What a
// store fills in on reading is left out.
func diff(got, want idem.Record) string {
	var all []string
	add := func(same bool, field string, got, want any) {
		if !same {
			all = append(all, fmt.Sprintf("%s %v, want %v", field, got, want))
		}
	}
	add(got.Key == want.Key, "Key", fmt.Sprintf("%q", got.Key), fmt.Sprintf("%q", want.Key))
	add(got.State == want.State, "State", got.State, want.State)
	add(got.Version == want.Version, "Version", got.Version, want.Version)
	add(got.Fingerprint.Equal(want.Fingerprint), "Fingerprint", got.Fingerprint, want.Fingerprint)
	add(got.Attempt == want.Attempt, "Attempt", got.Attempt, want.Attempt)
	add(got.ValueOmitted == want.ValueOmitted, "ValueOmitted", got.ValueOmitted, want.ValueOmitted)
	sameValue := bytes.Equal(got.Value, want.Value) && (got.Value == nil) == (want.Value == nil)
	add(sameValue, "Value", short(got.Value), short(want.Value))
	for _, f := range []struct{ name, got, want string }{
		{"Kind", got.Kind, want.Kind},
		{"Owner", got.Owner, want.Owner},
		{"TraceID", got.TraceID, want.TraceID},
		{"Error", got.Error, want.Error},
		{"Note", got.Note, want.Note},
	} {
		add(f.got == f.want, f.name, short([]byte(f.got)), short([]byte(f.want)))
	}
	for _, f := range []struct {
		name      string
		got, want time.Time
	}{
		{"CreatedAt", got.CreatedAt, want.CreatedAt},
		{"StartedAt", got.StartedAt, want.StartedAt},
		{"UpdatedAt", got.UpdatedAt, want.UpdatedAt},
		{"LeaseUntil", got.LeaseUntil, want.LeaseUntil},
		{"ExpiresAt", got.ExpiresAt, want.ExpiresAt},
	} {
		add(f.got.Equal(f.want) && f.got.Location() == time.UTC, f.name, f.got, f.want)
	}
	return strings.Join(all, "; ")
}

// diffKeys says where two lists of keys part, or "".
func diffKeys(got, want []string) string {
	if slices.Equal(got, want) {
		return ""
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	part := func(keys []string) string {
		keys = keys[min(at, len(keys)):]
		if len(keys) > 8 {
			return fmt.Sprintf("%q…", keys[:8])
		}
		return fmt.Sprintf("%q", keys)
	}
	return fmt.Sprintf("%d keys, want %d; from position %d on %s, want %s", len(got), len(want), at, part(got), part(want))
}
