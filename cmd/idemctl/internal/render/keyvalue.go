package render

import (
	"bufio"
	"io"
	"strings"
)

// KeyValue is a block of labelled values, one a line, describing one thing. The
// zero value is ready for use.
type KeyValue struct {
	lines []labelled
}

type labelled struct {
	label string
	value Cell
}

// Add appends a line.
func (kv *KeyValue) Add(label string, value Cell) {
	kv.lines = append(kv.lines, labelled{label: Escape(label), value: value})
}

// Render writes the block: values aligned in a second column on a terminal,
// label and value separated by a tab otherwise. Values are never cut; the block
// is where a person looks for the full text.
func (kv *KeyValue) Render(w io.Writer, term Terminal) error {
	bw := bufio.NewWriter(w)
	widest := 0
	for _, line := range kv.lines {
		widest = max(widest, Width(line.label))
	}
	for _, line := range kv.lines {
		if _, err := io.WriteString(bw, line.text(widest, term)); err != nil {
			return err
		}
	}
	return bw.Flush()
}

func (l labelled) text(widest int, term Terminal) string {
	if !term.IsTTY {
		return l.label + "\t" + Escape(l.value.exact()) + "\n"
	}
	value := l.value.display()
	if value == "" {
		return l.label + "\n"
	}
	blanks := strings.Repeat(" ", widest-Width(l.label)+gutter)
	return l.label + blanks + term.Paint(l.value.Style, value) + "\n"
}
