package render

import (
	"strconv"
	"time"
)

// Cell is one value on its way to a [Table] or a [KeyValue] block. Both escape
// it; the texts are raw.
type Cell struct {
	// Text is the value as shown on a terminal.
	Text string
	// Piped is the exact value, shown in its place when the output is no
	// terminal and in CSV. Empty means Text.
	Piped string
	// Style colours the text where the terminal has colour.
	Style Style
	// None says that there is no value: CSV has an empty field, as JSON null.
	None bool
}

// NoCell stands for a value that is not there.
func NoCell() Cell { return Cell{Text: "-", None: true} }

// Text is a cell of plain text.
func Text(s string) Cell { return Cell{Text: s} }

// CountCell shows n with separators on a terminal, as digits elsewhere.
func CountCell(n int64) Cell {
	return Cell{Text: Count(n), Piped: strconv.FormatInt(n, 10)}
}

// BytesCell shows n as [Bytes] on a terminal, as a number of bytes elsewhere.
func BytesCell(n int64) Cell {
	return Cell{Text: Bytes(n), Piped: strconv.FormatInt(n, 10)}
}

// AgeCell shows d as [Age] on a terminal, in full Go syntax elsewhere.
func AgeCell(d time.Duration) Cell {
	return Cell{Text: Age(d), Piped: d.String()}
}

// WithStyle is the cell in another style.
func (c Cell) WithStyle(style Style) Cell {
	c.Style = style
	return c
}

func (c Cell) display() string { return Escape(c.Text) }

func (c Cell) exact() string {
	if c.Piped != "" {
		return c.Piped
	}
	return c.Text
}

// field is the value in CSV.
func (c Cell) field() string {
	if c.None {
		return ""
	}
	return c.exact()
}
