package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Column describes one column of a [Table].
type Column struct {
	// Name is the heading; a terminal shows it in upper case.
	Name string
	// Right aligns the column to the right, as numbers are.
	Right bool
	// Flex lets the column be cut where the terminal is too narrow. The other
	// columns never are: a number with its middle missing is a wrong number.
	Flex bool
}

// Table is a list of rows under headings. Fill in Columns, add rows, render
// once. A table without rows prints nothing, unless Header asks for more.
type Table struct {
	// Columns from left to right.
	Columns []Column
	// Header prints the headings even when the output is no terminal.
	Header bool
	// Full cuts nothing on a terminal either; long lines wrap.
	Full bool

	rows [][]Cell
}

// AddRow appends a row. Missing cells are empty; too many make Render fail.
func (t *Table) AddRow(cells ...Cell) {
	t.rows = append(t.rows, append([]Cell(nil), cells...))
}

// Len is the number of rows added.
func (t *Table) Len() int { return len(t.rows) }

// Render writes the table: aligned and fitted for a terminal, tab-separated
// otherwise. Tab-separated output has no colour even if term.Color is set,
// since it is read by programs and FORCE_COLOR is often set where they run.
func (t *Table) Render(w io.Writer, term Terminal) error {
	for i, row := range t.rows {
		if len(row) > len(t.Columns) {
			return fmt.Errorf("row %d has %d cells for %d columns", i+1, len(row), len(t.Columns))
		}
	}
	bw := bufio.NewWriter(w)
	write := t.writePiped
	if term.IsTTY {
		write = t.writeAligned
	}
	if err := write(bw, term); err != nil {
		return err
	}
	return bw.Flush()
}

func (t *Table) writePiped(w io.Writer, _ Terminal) error {
	if t.Header {
		if err := writeTabbed(w, t.heading()); err != nil {
			return err
		}
	}
	for _, row := range t.rows {
		if err := writeTabbed(w, padRow(row, len(t.Columns))); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) writeAligned(w io.Writer, term Terminal) error {
	if len(t.rows) == 0 && !t.Header {
		return nil
	}
	heading := t.heading()
	widths := t.layout(heading, term.Width)
	if _, err := io.WriteString(w, t.line(heading, widths, term)); err != nil {
		return err
	}
	for _, row := range t.rows {
		if _, err := io.WriteString(w, t.line(row, widths, term)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) heading() []Cell {
	cells := make([]Cell, len(t.Columns))
	for i, column := range t.Columns {
		cells[i] = Bold.Text(strings.ToUpper(column.Name))
	}
	return cells
}

// line lays out one row. Blanks are held back until text follows them, so that
// no line ends in blanks.
func (t *Table) line(cells []Cell, widths []int, term Terminal) string {
	var line strings.Builder
	blanks := 0
	for i, cell := range cells {
		text := Truncate(cell.display(), widths[i])
		free := widths[i] - Width(text)
		if t.Columns[i].Right {
			blanks, free = blanks+free, 0
		}
		if text != "" {
			line.WriteString(strings.Repeat(" ", blanks))
			line.WriteString(term.Paint(cell.Style, text))
			blanks = 0
		}
		blanks += free + gutter
	}
	line.WriteByte('\n')
	return line.String()
}

func padRow(row []Cell, columns int) []Cell {
	for len(row) < columns {
		row = append(row, Cell{})
	}
	return row
}

// writeTabbed writes one line for programs. Escaping turns tabs and newlines
// inside a cell into \t and \n, so the line always has its columns.
func writeTabbed(w io.Writer, cells []Cell) error {
	fields := make([]string, len(cells))
	for i, cell := range cells {
		fields[i] = Escape(cell.exact())
	}
	_, err := io.WriteString(w, strings.Join(fields, "\t")+"\n")
	return err
}
