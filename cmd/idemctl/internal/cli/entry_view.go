package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// entryView says how a record looks in a list.
func entryView(l look, now time.Time) render.View[entry] {
	text := func(f func(e entry) string) func(entry) render.Cell {
		return func(e entry) render.Cell { return orNone(f(e)) }
	}
	at := func(f func(e entry) time.Time) func(entry) render.Cell {
		return func(e entry) render.Cell { return l.timeCell(f(e), now) }
	}
	count := func(f func(e entry) int64) func(entry) render.Cell {
		return func(e entry) render.Cell {
			if e.Damage != nil {
				return render.NoCell()
			}
			return render.CountCell(f(e))
		}
	}
	column := func(name string) render.Column { return render.Column{Name: name} }
	right := func(name string) render.Column { return render.Column{Name: name, Right: true} }
	flex := func(name string) render.Column { return render.Column{Name: name, Flex: true} }
	return render.View[entry]{
		Name: func(e entry) string { return e.Key.String() },
		JSON: func(e entry) any { return newRecordJSON(&e) },
		Fields: []render.Field[entry]{
			{Column: flex("key"), Cell: func(e entry) render.Cell { return render.Text(e.Key.String()) }},
			{Column: column("state"), Cell: func(e entry) render.Cell { return stateStyle(e.State).Text(e.State) }},
			{Column: column("kind"), Cell: text(func(e entry) string { return e.Kind }), Wide: true},
			createdField(l, now),
			{Column: column("lease"), Cell: func(e entry) render.Cell { return l.leaseCell(&e, now) }},
			{Column: column("expires"), Cell: at(func(e entry) time.Time { return e.ExpiresAt })},
			{Column: right("size"), Cell: func(e entry) render.Cell { return sizeCell(&e) }},
			{Column: right("replays"), Cell: count(func(e entry) int64 { return int64(e.Replays) })},
			{Column: right("mismatches"), Cell: count(func(e entry) int64 { return int64(e.Mismatches) }), Wide: true},
			{Column: right("attempt"), Cell: count(func(e entry) int64 { return int64(e.Attempt) }), Wide: true},
			{Column: right("version"), Cell: count(func(e entry) int64 { return int64(e.Version) }), Wide: true},
			{Column: column("fingerprint"), Cell: text(func(e entry) string { return e.Fingerprint.String() }), Wide: true},
			{Column: flex("owner"), Cell: text(func(e entry) string { return e.Owner }), Wide: true},
			{Column: flex("trace"), Cell: text(func(e entry) string { return e.TraceID }), Wide: true},
			{Column: flex("detail"), Cell: text(func(e entry) string { return e.summary }), Wide: true, CSVName: "-"},
		},
	}
}

// createdField is an age where times are relative, else a time.
func createdField(l look, now time.Time) render.Field[entry] {
	field := render.Field[entry]{
		Column: render.Column{Name: "created"},
		Cell:   func(e entry) render.Cell { return l.timeCell(e.CreatedAt, now) },
	}
	if l.times == render.TimeRelative {
		field.Column = render.Column{Name: "age"}
		field.CSVName = "created"
		field.Cell = func(e entry) render.Cell {
			if e.CreatedAt.IsZero() {
				return render.NoCell()
			}
			return render.Cell{Text: render.Age(e.age(now)), Piped: l.times.Format(e.CreatedAt, now)}
		}
	}
	return field
}

func (l look) timeCell(t, now time.Time) render.Cell {
	if t.IsZero() {
		return render.NoCell()
	}
	return render.Text(l.times.Format(t, now))
}

// leaseCell shows how long an attempt is still trusted, or what ended that.
func (l look) leaseCell(e *entry, now time.Time) render.Cell {
	switch {
	case e.LeaseUntil.IsZero():
		return render.NoCell()
	case l.times != render.TimeRelative:
		return l.timeCell(e.LeaseUntil, now)
	case e.OwnerAlive != nil && !*e.OwnerAlive:
		return render.Yellow.Text("owner gone")
	case e.overdue(now) > 0:
		return render.Yellow.Text(render.Age(e.overdue(now)) + " overdue")
	}
	return l.timeCell(e.LeaseUntil, now)
}

func sizeCell(e *entry) render.Cell {
	if e.Size == 0 {
		return render.NoCell()
	}
	return render.BytesCell(int64(e.Size))
}

func stateStyle(state string) render.Style {
	switch state {
	case idem.Failed.String(), stateDamaged:
		return render.Red
	case idem.Interrupted.String():
		return render.Yellow
	case stateExpired:
		return render.Dim
	}
	return render.Plain
}

func orNone(s string) render.Cell {
	if s == "" {
		return render.NoCell()
	}
	return render.Text(s)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// recordJSON is a record in JSON; docs/cli.md describes it. Absent things are
// null, so that every record has the same members.
type recordJSON struct {
	Key                string   `json:"key"`
	Scope              string   `json:"scope"`
	ID                 string   `json:"id"`
	State              string   `json:"state"`
	StoredState        *string  `json:"stored_state"`
	Version            uint64   `json:"version"`
	Kind               *string  `json:"kind"`
	Attempt            int      `json:"attempt"`
	Owner              *string  `json:"owner"`
	OwnerAlive         *bool    `json:"owner_alive"`
	TraceID            *string  `json:"trace_id"`
	CreatedAt          *string  `json:"created_at"`
	StartedAt          *string  `json:"started_at"`
	UpdatedAt          *string  `json:"updated_at"`
	LeaseUntil         *string  `json:"lease_until"`
	ExpiresAt          *string  `json:"expires_at"`
	Fingerprint        *string  `json:"fingerprint"`
	FingerprintParts   []string `json:"fingerprint_parts"`
	Steps              []string `json:"steps"`
	Resume             bool     `json:"resume"`
	ValueSize          *int     `json:"value_size"`
	ValueSHA256        *string  `json:"value_sha256"`
	ValueOmitted       int64    `json:"value_omitted"`
	Error              *string  `json:"error"`
	Note               *string  `json:"note"`
	Replays            uint64   `json:"replays"`
	LastReplayAt       *string  `json:"last_replay_at"`
	Mismatches         uint64   `json:"mismatches"`
	DistinctMismatches int      `json:"distinct_mismatches"`
	SizeBytes          int      `json:"size_bytes"`
	Detail             detail   `json:"detail"`
	Problem            *string  `json:"problem,omitempty"`
}

// newRecordJSON describes a record. Its value is described only if it was read.
func newRecordJSON(e *entry) recordJSON {
	j := recordJSON{
		Key: e.Key.String(), Scope: e.Key.Scope, ID: e.Key.ID, State: e.State, FingerprintParts: []string{}, Steps: []string{},
	}
	if e.Damage != nil {
		j.Problem = optional(e.Damage.Error())
		return j
	}
	j.StoredState = optional(e.Record.State.String())
	j.Version, j.Kind, j.Attempt = e.Version, optional(e.Kind), e.Attempt
	j.Owner, j.OwnerAlive, j.TraceID = optional(e.Owner), e.OwnerAlive, optional(e.TraceID)
	j.CreatedAt, j.StartedAt, j.UpdatedAt = jsonTime(e.CreatedAt), jsonTime(e.StartedAt), jsonTime(e.UpdatedAt)
	j.LeaseUntil, j.ExpiresAt = jsonTime(e.LeaseUntil), jsonTime(e.ExpiresAt)
	if !e.Fingerprint.IsZero() {
		j.Fingerprint, j.FingerprintParts = optional(e.Fingerprint.String()), e.Fingerprint.Names()
	}
	j.Steps, j.Resume = stepNames(e), e.Resume
	if e.Value != nil {
		size := len(e.Value)
		j.ValueSize, j.ValueSHA256 = &size, optional(valueSum(e.Value))
	}
	j.ValueOmitted, j.Error, j.Note = e.ValueOmitted, optional(e.Error), optional(e.Note)
	j.Replays, j.LastReplayAt = e.Replays, jsonTime(e.LastReplayAt)
	j.Mismatches, j.DistinctMismatches, j.SizeBytes, j.Detail = e.Mismatches, e.DistinctMismatches, e.Size, e.detail
	return j
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// jsonTime is RFC 3339 in UTC with the precision of a record, or null.
func jsonTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return optional(t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano))
}

func valueSum(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:])
}
