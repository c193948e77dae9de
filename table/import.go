package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/internal/canonjson"
)

// MaxReported is how many duplicates, and how many refused rows, an ImportReport
// names. All of them are counted.
const MaxReported = 100

// ImportReport says what became of the rows of an import. Every row is counted
// once.
type ImportReport struct {
	Inserted int
	// Repeated counts rows that were there already, with the same content: from an
	// earlier run that was interrupted, or twice in the input.
	Repeated int
	// Duplicated counts rows that were left out because they contradict one that is
	// there, and Duplicates are the first of them.
	Duplicated int
	Duplicates []Duplicate
	// Refused counts rows that can not be rows of the table, and Refusals are the
	// first of them.
	Refused  int
	Refusals []Refusal
}

// Duplicate is a row of an import that contradicts one that is there.
type Duplicate struct {
	ID string
	// Column is the name of the unique column whose value another row has, or "" if
	// the row of this very ID has other content.
	Column string
	// Row is the ID of the row that is there.
	Row string
	// Differ are the members of the values that differ, sorted, if Column is "" and
	// both values are JSON objects.
	Differ []string
}

// Refusal is a row of an import that can not be one of the table: its ID breaks a
// rule, its value can not be stored, or what is stored under its ID can not be read.
type Refusal struct {
	ID  string
	Err error
}

// Import inserts rows, in order, and hides nothing: what is there stays, and what
// contradicts it is reported. Memory is bounded by a batch of the input, of about a
// megabyte; on a *idem.BoltStore a batch is one commit.
//
// If it ends early, with the store's or the context's error, or because the process
// died, run it again with the same input: rows that were inserted are Repeated then.
// The report that comes with an error counts what was done before.
func (t *Table[T]) Import(ctx context.Context, rows iter.Seq2[string, T]) (ImportReport, error) {
	const maxRows, maxBytes = 256, 1 << 20
	var report ImportReport
	var batch []importRow[T]
	var size int
	var err error
	flush := func() bool {
		err = t.importBatch(ctx, batch, &report)
		batch, size = batch[:0], 0
		return err == nil
	}
	for id, value := range rows {
		r := importRow[T]{id: id, err: t.key(id).Validate()}
		if r.err == nil {
			r.content, r.err = t.encode(value)
		}
		if r.err == nil {
			size += len(r.content.body.Value)
		}
		batch = append(batch, r)
		if (len(batch) == maxRows || size >= maxBytes) && !flush() {
			break
		}
	}
	if err == nil && len(batch) > 0 {
		flush()
	}
	if err != nil {
		return report, fmt.Errorf("import into %q: %w", t.scope, err)
	}
	return report, nil
}

type importRow[T any] struct {
	id      string
	content *stored[T]
	err     error // why it is refused
}

// importBatch adds to the report what was committed.
func (t *Table[T]) importBatch(ctx context.Context, batch []importRow[T], report *ImportReport) error {
	var done ImportReport
	inTx := false
	err := t.transact(ctx, func(on *Table[T]) error {
		inTx = on != t
		done = ImportReport{}
		for _, r := range batch {
			if err := on.importOne(ctx, r, &done); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil || !inTx {
		report.add(&done)
	}
	return err
}

// importOne reports one row, or returns an error that ends the import.
func (t *Table[T]) importOne(ctx context.Context, r importRow[T], report *ImportReport) error {
	if r.err != nil {
		report.refuse(Refusal{r.id, r.err})
		return nil
	}
	row, err := t.insert(ctx, t.key(r.id), r.content)
	var taken *DuplicateError[T]
	switch {
	case errors.As(err, &taken):
		report.duplicate(Duplicate{ID: r.id, Column: taken.Column, Row: taken.Row.ID})
	case errors.Is(err, ErrForeign), errors.Is(err, idem.ErrUndecodable):
		report.refuse(Refusal{r.id, err})
	case err != nil:
		return fmt.Errorf("%q: %w", r.id, err)
	case !row.Existing:
		report.Inserted++
	default:
		there, err := json.Marshal(row.Value)
		if err != nil {
			return fmt.Errorf("%q: %w", r.id, err)
		}
		if differ, same := difference(there, r.content.body.Value); same {
			report.Repeated++
		} else {
			report.duplicate(Duplicate{ID: r.id, Row: r.id, Differ: differ})
		}
	}
	return nil
}

func (r *ImportReport) duplicate(d Duplicate) {
	r.Duplicated++
	if len(r.Duplicates) < MaxReported {
		r.Duplicates = append(r.Duplicates, d)
	}
}

func (r *ImportReport) refuse(f Refusal) {
	r.Refused++
	if len(r.Refusals) < MaxReported {
		r.Refusals = append(r.Refusals, f)
	}
}

// add joins the report of a batch.
func (r *ImportReport) add(b *ImportReport) {
	r.Inserted += b.Inserted
	r.Repeated += b.Repeated
	r.Duplicated += b.Duplicated
	r.Refused += b.Refused
	r.Duplicates = append(r.Duplicates, b.Duplicates[:min(len(b.Duplicates), MaxReported-len(r.Duplicates))]...)
	r.Refusals = append(r.Refusals, b.Refusals[:min(len(b.Refusals), MaxReported-len(r.Refusals))]...)
}

// difference compares two values. What is the same content in another spelling is
// the same; text that has no canonical spelling is compared as it is.
func difference(a, b []byte) (members []string, same bool) {
	ca, errA := canonjson.Canonicalize(a)
	cb, errB := canonjson.Canonicalize(b)
	if errA != nil || errB != nil {
		return nil, bytes.Equal(a, b)
	}
	if bytes.Equal(ca, cb) {
		return nil, true
	}
	var ma, mb map[string]json.RawMessage
	if json.Unmarshal(ca, &ma) != nil || json.Unmarshal(cb, &mb) != nil || ma == nil || mb == nil {
		return nil, false
	}
	return differing(ma, mb), false
}

// differing are the names of the members that are not the same in both, sorted.
func differing(a, b map[string]json.RawMessage) []string {
	var names []string
	for name, value := range a {
		if other, ok := b[name]; !ok || !bytes.Equal(value, other) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
