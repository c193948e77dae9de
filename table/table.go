package table

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/idembolt/idem"
)

// MaxValueBytes bounds the JSON of a value.
const MaxValueBytes = idem.MaxValueBytes - 1<<10

// Table is a table of rows of one type. Make one with New. It is safe for
// concurrent use, also by several processes if the store is.
type Table[T any] struct {
	store idem.Store
	settings[T]
}

// settings are what New was given.
type settings[T any] struct {
	scope     string
	retention time.Duration
	column    string         // name of the unique column, or ""
	of        func(T) string // its value
}

// Row is a row as it was read or written.
type Row[T any] struct {
	ID    string
	Value T
	// Version grows by one with every update. It starts at a random number below
	// 2^52, so that a row that is deleted and inserted again is not taken for the
	// one it was.
	Version   uint64
	CreatedAt time.Time
	UpdatedAt time.Time
	// Existing is set by Insert if the row was there before.
	Existing bool
}

// Option configures a Table.
type Option func(*options)

type options struct {
	retention time.Duration
	columns   []string
	of        any // func(T) string
}

// WithRetention changes how long a row is kept after it was last written. The
// default is idem.MaxRetention, and none may be longer.
func WithRetention(d time.Duration) Option { return func(o *options) { o.retention = d } }

// WithUnique adds a second unique column, whose value it takes from the row's: no
// two rows have the same. "" is no value, and any number of rows may have none. The
// name is 1 to 32 bytes of what a scope may hold. A table has one such column at
// most.
//
// The function must always give the same answer for the same value, also in later
// builds of the program. A column that is added to a table with rows covers each of
// them from its next Update.
func WithUnique[T any](name string, of func(T) string) Option {
	return func(o *options) { o.columns, o.of = append(o.columns, name), of }
}

// New returns the table of a scope, which names what the rows are and, where there
// are tenants, the tenant. Nothing else may use it, nor, with a unique column, the
// scope that ends in ":unique:" and its name. Errors: *idem.KeyError for a scope or
// name that breaks a rule; *idem.PolicyError for a retention that a policy could not
// have; an error for two unique columns, or one of another type.
func New[T any](store idem.Store, scope string, opts ...Option) (*Table[T], error) {
	o := options{retention: idem.MaxRetention}
	for _, opt := range opts {
		opt(&o)
	}
	t := &Table[T]{store: store, settings: settings[T]{scope: scope, retention: o.retention}}
	if store == nil {
		return nil, errors.New("a table needs a store")
	}
	if err := t.key("any").Validate(); err != nil {
		return nil, err
	}
	if err := (idem.Policy{Retention: t.retention, Lease: idem.MinLease}).Validate(); err != nil {
		return nil, err
	}
	if len(o.columns) == 0 {
		return t, nil
	}
	if err := t.setUnique(o.columns, o.of); err != nil {
		return nil, err
	}
	return t, nil
}

func (s *settings[T]) setUnique(columns []string, of any) error {
	take, ok := of.(func(T) string)
	name := columns[0]
	switch {
	case len(columns) > 1:
		return fmt.Errorf("a table has one unique column, not %q", columns)
	case !ok || take == nil:
		return fmt.Errorf("the unique column %q needs a function of %T, not %T", name, *new(T), of)
	case name == "" || len(name) > 32:
		return fmt.Errorf("the name %q of the unique column has %d bytes, it needs 1 to 32", name, len(name))
	}
	s.column, s.of = name, take
	if err := s.indexKey("any").Validate(); err != nil {
		return fmt.Errorf("unique column %q of %q: %w", name, s.scope, err)
	}
	return nil
}

// On returns the table on another store. On tx.Records() what it writes commits
// with the rest of the transaction, or not at all. All is not possible there.
func (t *Table[T]) On(store idem.Store) *Table[T] {
	return &Table[T]{store: store, settings: t.settings}
}

func (s *settings[T]) key(id string) idem.Key { return idem.Key{Scope: s.scope, ID: id} }

// Get returns a row, or an error that matches idem.ErrNotFound.
func (t *Table[T]) Get(ctx context.Context, id string) (Row[T], error) {
	key := t.key(id)
	found, err := t.load(ctx, key)
	if err == nil && !found.live() {
		err = idem.ErrNotFound
	}
	if err != nil {
		return Row[T]{}, fmt.Errorf("get %q: %w", key.String(), err)
	}
	return found.row(), nil
}

// GetBy returns the row that has the value in the unique column, or an error that
// matches idem.ErrNotFound.
func (t *Table[T]) GetBy(ctx context.Context, value string) (Row[T], error) {
	if t.of == nil {
		return Row[T]{}, fmt.Errorf("get a row of %q: the table has no unique column", t.scope)
	}
	row, err := t.holder(ctx, value)
	if err != nil {
		return Row[T]{}, fmt.Errorf("get a row of %q by its %s: %w", t.scope, t.column, err)
	}
	return row, nil
}

// All yields the rows whose ids begin with the prefix, "" for all, in ascending
// byte order of the ids. Each row is consistent in itself; the sequence is not a
// snapshot. A row that can not be read is yielded as its ID and an error, and the
// sequence goes on; an error with an empty ID ends it.
func (t *Table[T]) All(ctx context.Context, prefix string) iter.Seq2[Row[T], error] {
	return func(yield func(Row[T], error) bool) {
		for rec, err := range t.store.Scan(ctx, idem.Query{Prefix: t.scope + "/" + prefix}) {
			if err != nil {
				if !yield(Row[T]{ID: rec.Key.ID}, fmt.Errorf("read the rows of %q: %w", t.scope, err)) {
					return
				}
				continue
			}
			found, err := t.read(rec)
			switch {
			case err != nil:
				if !yield(Row[T]{ID: rec.Key.ID}, fmt.Errorf("read %q: %w", rec.Key.String(), err)) {
					return
				}
			case found.live():
				if !yield(found.row(), nil) {
					return
				}
			}
		}
	}
}
