package fsm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/idembolt/idem"
)

// MaxPayloadBytes bounds the payload of one transition.
const MaxPayloadBytes = 64 << 10

// Machine keeps the states of instances in a store. Make one with New. It is safe
// for concurrent use, also by several processes if the store is.
type Machine struct {
	store     idem.Store
	scope     string
	def       Definition
	version   string
	retention time.Duration
	traceFrom func(context.Context) string
}

// Option configures a Machine.
type Option func(*Machine)

// WithRetention changes how long an instance is kept after its last transition,
// or its start. The default is idem.MaxRetention, and none may be longer.
func WithRetention(d time.Duration) Option { return func(m *Machine) { m.retention = d } }

// WithTraceFrom takes the trace id of each step from the context of its call. The
// default is the trace id of the attempt that the context belongs to, if it is one
// that idem.Do or idem.DoTx has handed to a function.
func WithTraceFrom(f func(context.Context) string) Option {
	return func(m *Machine) { m.traceFrom = f }
}

// New returns the machine of a definition, which is copied. The scope names the
// objects and, where there are tenants, the tenant; nothing else may use it. Errors:
// ErrInvalidDefinition, with everything that is wrong; *idem.KeyError for a scope
// that breaks a rule of idem.Key; *idem.PolicyError for a retention that a policy
// could not have.
func New(store idem.Store, scope string, def Definition, opts ...Option) (*Machine, error) {
	m := &Machine{store: store, scope: scope, retention: idem.MaxRetention, traceFrom: attemptTrace}
	for _, o := range opts {
		o(m)
	}
	if store == nil {
		return nil, errors.New("a state machine needs a store")
	}
	if err := (idem.Key{Scope: scope, ID: "any"}).Validate(); err != nil {
		return nil, err
	}
	if err := (idem.Policy{Retention: m.retention, Lease: idem.MinLease}).Validate(); err != nil {
		return nil, err
	}
	if err := def.check(); err != nil {
		return nil, err
	}
	m.def = def.clone()
	m.version = m.def.version()
	return m, nil
}

func attemptTrace(ctx context.Context) string {
	if a, ok := idem.AttemptFrom(ctx); ok {
		return a.TraceID()
	}
	return ""
}

// On returns the machine on another store. On tx.Records() its transitions commit
// with the rest of the transaction, or not at all; the Version of an instance
// then counts only within the transaction.
func (m *Machine) On(store idem.Store) *Machine {
	on := *m
	on.store = store
	return &on
}

// Version identifies the definition: 16 hexadecimal digits, the same for every
// definition that allows the same. It is stored with every transition.
func (m *Machine) Version() string { return m.version }

// Start creates the instance in the initial state. The id follows the rules of an
// idem.Key's ID. If there is an instance already that one is returned, whatever its
// state, with Existing set and nothing written.
func (m *Machine) Start(ctx context.Context, id string) (Instance, error) {
	key := idem.Key{Scope: m.scope, ID: id}
	in, err := m.start(ctx, key)
	if err != nil {
		return Instance{}, fmt.Errorf("start %q: %w", key.String(), err)
	}
	return in, nil
}

func (m *Machine) start(ctx context.Context, key idem.Key) (Instance, error) {
	fresh, err := m.fresh(ctx, key)
	if err != nil {
		return Instance{}, err
	}
	rec, err := m.store.Create(ctx, fresh)
	existing := errors.Is(err, idem.ErrConflict)
	if err != nil && !existing {
		return Instance{}, err
	}
	in, _, err := m.open(&rec)
	in.Existing = existing
	return in, err
}

// Get returns the instance, or an error that matches idem.ErrNotFound.
func (m *Machine) Get(ctx context.Context, id string) (Instance, error) {
	key := idem.Key{Scope: m.scope, ID: id}
	rec, err := m.store.Get(ctx, key)
	if err == nil {
		var in Instance
		if in, _, err = m.open(&rec); err == nil {
			return in, nil
		}
	}
	return Instance{}, fmt.Errorf("get %q: %w", key.String(), err)
}

// Outcome says what Fire has found. The zero value is not a valid outcome.
type Outcome uint8

const (
	// Applied: this call has made the transition.
	Applied Outcome = iota + 1
	// Already: the instance is in the state, or came through it earlier. Nothing
	// was written.
	Already
)

// String returns the lower-case name, or "outcome(n)" for a value that is not one.
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Already:
		return "already"
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Result is the answer of Fire.
type Result struct {
	Outcome Outcome
	// Instance is as this call left or found it.
	Instance Instance
}

// Fire makes the transition of an instance to a state, if it is declared. The
// payload, at most MaxPayloadBytes, is kept in the history. The package
// documentation says what is answered in which case.
//
// Of concurrent calls each is judged by the state that the one before it has left.
// After an error of the store it may be open whether the transition was made: a
// repeat is told. Errors: *IllegalError, which has the instance as it is;
// idem.ErrNotFound, ErrUnknownState, ErrPayloadTooLarge, *DefinitionError,
// ErrForeign, *idem.KeyError and the store's.
func (m *Machine) Fire(ctx context.Context, id, to string, payload []byte) (Result, error) {
	key := idem.Key{Scope: m.scope, ID: id}
	res, err := m.fire(ctx, key, to, payload)
	if err != nil {
		return Result{}, fmt.Errorf("fire %q to %q: %w", key.String(), to, err)
	}
	return res, nil
}

func (m *Machine) fire(ctx context.Context, key idem.Key, to string, payload []byte) (Result, error) {
	if _, ok := m.def.Transitions[to]; !ok {
		return Result{}, fmt.Errorf("%w, not one of %q", ErrUnknownState, slices.Concat(m.def.layers()...))
	}
	if len(payload) > MaxPayloadBytes {
		return Result{}, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrPayloadTooLarge, len(payload), MaxPayloadBytes)
	}
	rec, err := m.store.Get(ctx, key)
	if err != nil {
		return Result{}, err
	}
	for {
		in, stored, err := m.open(&rec)
		if err != nil {
			return Result{}, err
		}
		if outcome, err := m.judge(in, &stored, to); outcome != Applied {
			return Result{outcome, in}, err
		}
		next, err := m.step(ctx, rec, &stored, to, payload)
		if err != nil {
			return Result{}, err
		}
		rec, err = m.store.Swap(ctx, rec.Version, next)
		switch {
		case err == nil:
			return Result{Applied, m.instance(&rec, &stored)}, nil
		case !errors.Is(err, idem.ErrConflict):
			return Result{}, err
		case rec.Version == 0: // it has expired, or was purged, meanwhile
			return Result{}, idem.ErrNotFound
		case ctx.Err() != nil: // the others may never stop
			return Result{}, ctx.Err()
		}
	}
}

// judge says what a call for a state is. A declared transition comes before the
// history, so that a machine with cycles can go round.
func (m *Machine) judge(in Instance, stored *value, to string) (Outcome, error) {
	switch {
	case in.State == to:
		return Already, nil
	case slices.Contains(m.def.Transitions[in.State], to):
		return Applied, nil
	case stored.cameThrough(to):
		return Already, nil
	}
	return 0, &IllegalError{From: in.State, To: to, Allowed: slices.Clone(in.Allowed), Instance: in}
}
