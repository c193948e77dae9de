package render

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
)

// tableItems collects rows on a terminal, where the widths depend on all of
// them, and writes them at once in a pipe.
type tableItems[T any] struct {
	out     *bufio.Writer
	term    Terminal
	table   Table
	content []func(T) Cell
	started bool
}

func newTableItems[T any](out *bufio.Writer, opts Options, view View[T]) *tableItems[T] {
	items := &tableItems[T]{out: out, term: opts.Terminal}
	// Who asks for more columns does not want to see less of them.
	items.table = Table{Header: opts.Header, Full: opts.Full || opts.Format == FormatWide}
	for _, field := range view.Fields {
		if field.Cell == nil || field.Wide && opts.Format != FormatWide {
			continue
		}
		items.table.Columns = append(items.table.Columns, field.Column)
		items.content = append(items.content, field.Cell)
	}
	return items
}

func (t *tableItems[T]) write(item T) error {
	row := make([]Cell, len(t.content))
	for i, content := range t.content {
		row[i] = content(item)
	}
	if t.term.IsTTY {
		t.table.AddRow(row...)
		return nil
	}
	if err := t.start(); err != nil {
		return err
	}
	return writeTabbed(t.out, row)
}

func (t *tableItems[T]) start() error {
	if t.started || !t.table.Header {
		return nil
	}
	t.started = true
	return writeTabbed(t.out, t.table.heading())
}

func (t *tableItems[T]) finish() error {
	if t.term.IsTTY {
		return t.table.Render(t.out, t.term)
	}
	return t.start()
}

// csvItems writes raw text, which a spreadsheet or script reads back as it was.
// Only bytes that are not UTF-8 are spelled out, as CSV is text. On a terminal,
// where nothing reads it back, fields are escaped instead.
type csvItems[T any] struct {
	out     *csv.Writer
	clean   func(string) string
	header  []string
	content []func(T) string
}

func newCSVItems[T any](out *bufio.Writer, term Terminal, view View[T]) *csvItems[T] {
	items := &csvItems[T]{out: csv.NewWriter(out), clean: escapeInvalid}
	if term.IsTTY {
		items.clean = Escape
	}
	for _, field := range view.Fields {
		if field.CSVName == "-" || field.CSV == nil && field.Cell == nil {
			continue
		}
		name, content := field.CSVName, field.CSV
		if name == "" {
			name = field.Name
		}
		if content == nil {
			content = func(item T) string { return field.Cell(item).field() }
		}
		items.header = append(items.header, name)
		items.content = append(items.content, content)
	}
	return items
}

func (c *csvItems[T]) write(item T) error {
	if err := c.start(); err != nil {
		return err
	}
	row := make([]string, len(c.content))
	for i, content := range c.content {
		row[i] = c.clean(content(item))
	}
	return c.out.Write(row)
}

func (c *csvItems[T]) start() error {
	if c.header == nil {
		return nil
	}
	header := c.header
	c.header = nil
	return c.out.Write(header)
}

func (c *csvItems[T]) finish() error {
	err := c.start()
	c.out.Flush()
	return errors.Join(err, c.out.Error())
}

// ErrNameSkipped is returned by [Records.Close] when a name holds the byte that
// ends names and was left out. Printed, it would be read as two other names,
// which a command fed by the list might then delete.
var ErrNameSkipped = errors.New("name contains the separator")

// nameItems writes names raw, except on a terminal.
type nameItems[T any] struct {
	out     *bufio.Writer
	name    func(T) string
	tty     bool
	end     string
	skipped int
	first   string
}

func newNameItems[T any](out *bufio.Writer, opts Options, view View[T]) *nameItems[T] {
	items := &nameItems[T]{out: out, name: view.Name, tty: opts.Terminal.IsTTY, end: "\n"}
	if opts.NUL {
		items.end = "\x00"
	}
	return items
}

func (n *nameItems[T]) write(item T) error {
	name := n.name(item)
	if n.tty {
		name = Escape(name)
	}
	if strings.Contains(name, n.end) {
		if n.skipped == 0 {
			n.first = name
		}
		n.skipped++
		return nil
	}
	_, err := n.out.WriteString(name + n.end)
	return err
}

func (n *nameItems[T]) finish() error {
	if n.skipped == 0 {
		return nil
	}
	other := "-0"
	if n.end == "\x00" {
		other = "-o json"
	}
	return fmt.Errorf("left out %d names, first %q, try %s: %w", n.skipped, n.first, other, ErrNameSkipped)
}
