package fsm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idembolt/idem"
)

// MaxHistory is how many transitions of an instance are kept.
const MaxHistory = 64

const (
	kind          = "fsm"
	maxTraceBytes = 128
)

// Instance is one object with a state. It is a copy: changing it changes nothing.
type Instance struct {
	ID    string
	State string
	// Allowed are the states that can follow, as they are declared. It is empty in
	// a final state.
	Allowed []string
	// History are the last MaxHistory transitions, oldest first, and Dropped counts
	// those before them.
	History []Step
	Dropped int
	// Version is the store's number of the last write. It grows with each.
	Version   uint64
	CreatedAt time.Time
	UpdatedAt time.Time // of the last transition, or the start
	ExpiresAt time.Time
	// Existing is set by Start if the instance was there before.
	Existing bool
}

// Step is one transition that was made.
type Step struct {
	From string    `json:"from"`
	To   string    `json:"to"`
	At   time.Time `json:"at"` // by the store's clock, UTC, in microseconds
	// TraceID is the one of the call, cut to 128 bytes. See WithTraceFrom.
	TraceID string `json:"trace,omitempty"`
	// Payload is what the caller gave. An empty one is nil.
	Payload []byte `json:"payload,omitempty"`
}

// value is the value of a record. The package documentation describes it.
type value struct {
	State      string   `json:"state"`
	Definition string   `json:"definition"`
	History    []Step   `json:"history,omitempty"`
	Dropped    int      `json:"dropped,omitempty"`
	Passed     []string `json:"passed,omitempty"`
}

// cameThrough reports whether a transition has ever led to the state. The initial
// state is none that was come through: going back to it is no repeat.
func (v *value) cameThrough(state string) bool {
	return slices.Contains(v.Passed, state) ||
		slices.ContainsFunc(v.History, func(s Step) bool { return s.To == state })
}

// add appends a step. What the history loses is remembered in short.
func (v *value) add(s Step) {
	v.State = s.To
	v.History = append(v.History, s)
	for len(v.History) > MaxHistory {
		if to := v.History[0].To; !slices.Contains(v.Passed, to) {
			v.Passed = append(v.Passed, to)
		}
		v.History = v.History[1:]
		v.Dropped++
	}
}

// open reads a record.
func (m *Machine) open(rec *idem.Record) (Instance, value, error) {
	if rec.Kind != kind {
		return Instance{}, value{}, fmt.Errorf("%w but of kind %q", ErrForeign, rec.Kind)
	}
	var v value
	if err := json.Unmarshal(rec.Value, &v); err != nil {
		return Instance{}, value{}, fmt.Errorf("%w: %w", idem.ErrUndecodable, err)
	}
	if _, known := m.def.Transitions[v.State]; !known {
		return Instance{}, value{}, &DefinitionError{State: v.State, Stored: v.Definition, Current: m.version}
	}
	return m.instance(rec, &v), v, nil
}

func (m *Machine) instance(rec *idem.Record, v *value) Instance {
	return Instance{
		ID: rec.Key.ID, State: v.State, Allowed: slices.Clone(m.def.Transitions[v.State]),
		History: slices.Clone(v.History), Dropped: v.Dropped,
		Version: rec.Version, CreatedAt: rec.CreatedAt, UpdatedAt: rec.UpdatedAt, ExpiresAt: rec.ExpiresAt,
	}
}

// fresh is the record of a new instance.
func (m *Machine) fresh(ctx context.Context, key idem.Key) (idem.Record, error) {
	now := idem.StoreNow(m.store)
	rec := idem.Record{Key: key, State: idem.Completed, Kind: kind, CreatedAt: now, StartedAt: now}
	return m.write(ctx, rec, &value{State: m.def.Initial}, now)
}

// step is the record after a transition, whose value it adds to v.
func (m *Machine) step(ctx context.Context, rec idem.Record, v *value, to string, payload []byte) (idem.Record, error) {
	now := idem.StoreNow(m.store)
	if len(payload) == 0 {
		payload = nil
	}
	v.add(Step{From: v.State, To: to, At: now, TraceID: m.trace(ctx), Payload: bytes.Clone(payload)})
	return m.write(ctx, rec, v, now)
}

func (m *Machine) write(ctx context.Context, rec idem.Record, v *value, now time.Time) (idem.Record, error) {
	v.Definition = m.version
	data, err := json.Marshal(v)
	if err != nil {
		return idem.Record{}, fmt.Errorf("encode the state: %w", err)
	}
	rec.Value, rec.TraceID = data, m.trace(ctx)
	rec.UpdatedAt, rec.ExpiresAt = now, now.Add(m.retention)
	return rec, nil
}

// trace is the trace id of a call, within the limits of a record.
func (m *Machine) trace(ctx context.Context) string {
	if m.traceFrom == nil {
		return ""
	}
	id := strings.ToValidUTF8(m.traceFrom(ctx), "\uFFFD")
	for len(id) > maxTraceBytes {
		id = strings.ToValidUTF8(id[:maxTraceBytes], "") // not half a character
	}
	return id
}
