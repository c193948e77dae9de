package render

import (
	"bufio"
	"fmt"
	"io"
	"iter"
)

// Options are the choices a user makes about a list.
type Options struct {
	// Terminal describes the stream written to; the zero value is a pipe.
	Terminal Terminal
	// Format is the output format. The zero value is FormatTable.
	Format Format
	// Header prints table headings even in a pipe.
	Header bool
	// Full cuts nothing in a table on a terminal. FormatWide implies it: lines
	// that are too long wrap.
	Full bool
	// NUL ends names with a NUL byte in place of a newline.
	NUL bool
}

// View says how items of one kind are shown in every format.
type View[T any] struct {
	// Fields are the columns of tables and CSV, from left to right.
	Fields []Field[T]
	// JSON returns the value to marshal; nil marshals the item itself. Strings
	// in it should be valid UTF-8, as encoding/json replaces other bytes.
	JSON func(T) any
	// Name returns the bare name. If nil, FormatName is refused.
	Name func(T) string
}

// Field is one column of a [View].
type Field[T any] struct {
	// Column is the place in a table. Its name is also the name in CSV.
	Column
	// Cell returns the content; nil leaves the field out of tables.
	Cell func(T) Cell
	// Wide shows the field in FormatWide but not in FormatTable.
	Wide bool
	// CSV returns the content in CSV; nil takes the exact text of Cell, and
	// nothing for a cell that is none.
	CSV func(T) string
	// CSVName is the name in CSV if it differs; "-" leaves the field out.
	CSVName string
}

// Records prints items one by one in the format chosen. Only an aligned table
// is held in memory until Close; every other format is streamed.
type Records[T any] struct {
	out   *bufio.Writer
	items itemWriter[T]
	count int
}

// itemWriter is one output format.
type itemWriter[T any] interface {
	write(item T) error
	// finish writes what belongs after the last item.
	finish() error
}

// NewRecords prepares to print items to w. It fails if the format is unknown or
// the view has no names and FormatName is asked for. Nothing is written yet.
func NewRecords[T any](w io.Writer, opts Options, view View[T]) (*Records[T], error) {
	out := bufio.NewWriter(w)
	items, err := newItemWriter(out, opts, view)
	if err != nil {
		return nil, err
	}
	return &Records[T]{out: out, items: items}, nil
}

func newItemWriter[T any](out *bufio.Writer, opts Options, view View[T]) (itemWriter[T], error) {
	switch opts.Format {
	case FormatTable, FormatWide, 0:
		return newTableItems(out, opts, view), nil
	case FormatJSON:
		return &jsonItems[T]{out: out, view: view, indent: opts.Terminal.IsTTY}, nil
	case FormatJSONL:
		return &jsonlItems[T]{out: out, view: view}, nil
	case FormatCSV:
		return newCSVItems(out, opts.Terminal, view), nil
	case FormatName:
		if view.Name != nil {
			return newNameItems(out, opts, view), nil
		}
	}
	return nil, fmt.Errorf("output format %s is not available here", opts.Format)
}

// Write prints one item. It may stay buffered until Flush or Close.
func (r *Records[T]) Write(item T) error {
	if err := r.items.write(item); err != nil {
		return err
	}
	r.count++
	return nil
}

// Flush hands everything buffered to the underlying writer, for output that is
// followed live. An aligned table has nothing to hand over before Close.
func (r *Records[T]) Flush() error { return r.out.Flush() }

// Close completes the output and flushes it; it does not close the underlying
// writer. After an error elsewhere call Flush in its place: a JSON array left
// open tells its reader that it is incomplete. Close returns an error wrapping
// [ErrNameSkipped] if names had to be left out.
func (r *Records[T]) Close() error {
	finishErr := r.items.finish()
	if err := r.out.Flush(); err != nil {
		return err
	}
	return finishErr
}

// Count is the number of items written.
func (r *Records[T]) Count() int { return r.count }

// WriteAll prints all items and closes. It stops at the first error of items,
// flushes and returns it unchanged.
func (r *Records[T]) WriteAll(items iter.Seq2[T, error]) error {
	for item, err := range items {
		if err == nil {
			err = r.Write(item)
		}
		if err != nil {
			_ = r.Flush() // the first error is the one to tell
			return err
		}
	}
	return r.Close()
}
