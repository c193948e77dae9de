package table

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// The kinds of the records.
const (
	kindRow   = "table"
	kindIndex = "table.unique"
)

// rowValue is the value of a row's record.
type rowValue struct {
	Version uint64          `json:"version,omitempty"` // 0: the row is not inserted yet
	Value   json.RawMessage `json:"value,omitempty"`
	Pending string          `json:"pending,omitempty"` // token of the change that is under way
}

// stored is a row's record with its content.
type stored[T any] struct {
	rec   idem.Record // its Version is 0 if there is none
	body  rowValue
	value T
	taken string // value of the unique column
}

// live reports whether there is a row, whatever change of it is under way.
func (s *stored[T]) live() bool { return s.body.Version != 0 }

func (s *stored[T]) row() Row[T] {
	return Row[T]{
		ID: s.rec.Key.ID, Value: s.value, Version: s.body.Version, CreatedAt: s.rec.CreatedAt, UpdatedAt: s.rec.UpdatedAt,
	}
}

// with returns the record with that body.
func (s *stored[T]) with(body rowValue) (idem.Record, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return idem.Record{}, fmt.Errorf("encode the row: %w", err)
	}
	rec := s.rec
	rec.Value = data
	return rec, nil
}

// load returns what is stored under a key.
func (t *Table[T]) load(ctx context.Context, key idem.Key) (*stored[T], error) {
	rec, err := t.store.Get(ctx, key)
	if errors.Is(err, idem.ErrNotFound) {
		return &stored[T]{rec: idem.Record{Key: key}}, nil
	}
	if err != nil {
		return nil, err
	}
	return t.read(rec)
}

func (t *Table[T]) read(rec idem.Record) (*stored[T], error) {
	if rec.Kind != kindRow {
		return nil, fmt.Errorf("%w but of kind %q", ErrForeign, rec.Kind)
	}
	s := &stored[T]{rec: rec}
	if err := json.Unmarshal(rec.Value, &s.body); err != nil {
		return nil, fmt.Errorf("%w: %w", idem.ErrUndecodable, err)
	}
	if !s.live() {
		return s, nil
	}
	if err := json.Unmarshal(s.body.Value, &s.value); err != nil {
		return nil, fmt.Errorf("%w into %T: %w", idem.ErrUndecodable, s.value, err)
	}
	s.taken = t.takes(s.value)
	return s, nil
}

func (t *Table[T]) takes(value T) string {
	if t.of == nil {
		return ""
	}
	return t.of(value)
}

// encode returns the row that a value makes. The value is what is read back: what
// does not survive that would make two readings of one row.
func (t *Table[T]) encode(value T) (*stored[T], error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidValue, err)
	}
	if len(data) > MaxValueBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalidValue, len(data), MaxValueBytes)
	}
	s := &stored[T]{body: rowValue{Value: data}}
	if err := json.Unmarshal(data, &s.value); err != nil {
		return nil, fmt.Errorf("%w: it can not be read back: %w", ErrInvalidValue, err)
	}
	s.taken = t.takes(s.value)
	return s, nil
}

// indexValue is the value of the record that says which row has a value in the
// unique column, or is about to have it: then the row's record has the same token.
type indexValue struct {
	Row   string `json:"row"`
	Token string `json:"token"`
}

// index is such a record with its content.
type index struct {
	rec  idem.Record // its Version is 0 if there is none
	body indexValue
}

// indexKey is where the record of a value is. The value is hashed because it may be
// longer than a key, and because keys are shown in lists, where personal data has
// no place.
func (s *settings[T]) indexKey(value string) idem.Key {
	sum := sha256.Sum256([]byte(value))
	return idem.Key{Scope: s.scope + ":unique:" + s.column, ID: hex.EncodeToString(sum[:])}
}

func (t *Table[T]) loadIndex(ctx context.Context, value string) (index, error) {
	key := t.indexKey(value)
	rec, err := t.store.Get(ctx, key)
	if errors.Is(err, idem.ErrNotFound) {
		return index{rec: idem.Record{Key: key}}, nil
	}
	if err != nil {
		return index{}, err
	}
	return readIndex(rec)
}

func readIndex(rec idem.Record) (index, error) {
	x := index{rec: rec}
	if rec.Kind != kindIndex {
		return index{}, fmt.Errorf("%q: %w but of kind %q", rec.Key.String(), ErrForeign, rec.Kind)
	}
	if err := json.Unmarshal(rec.Value, &x.body); err != nil {
		return index{}, fmt.Errorf("%q: %w: %w", rec.Key.String(), idem.ErrUndecodable, err)
	}
	return x, nil
}

// put creates the record, or replaces it if it has that version. It is errRaced if
// somebody else was faster.
func (t *Table[T]) put(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	var err error
	if version == 0 {
		rec, err = t.store.Create(ctx, rec)
	} else {
		rec, err = t.store.Swap(ctx, version, rec)
	}
	return rec, raced(err)
}

// errRaced says that a record is not as it was read. Nothing was written.
var errRaced = errors.New("changed meanwhile")

func raced(err error) error {
	if errors.Is(err, idem.ErrConflict) || errors.Is(err, idem.ErrNotFound) {
		return errRaced
	}
	return err
}

func newToken() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails: crypto/rand aborts the process instead
	return hex.EncodeToString(b)
}
