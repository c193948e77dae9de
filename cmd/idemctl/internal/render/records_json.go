package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes v as one JSON document with a newline after it, indented on
// a terminal. Like all JSON here it leaves <, > and & alone and spells every
// character that [Escape] would not let through as \uNNNN.
func WriteJSON(w io.Writer, term Terminal, v any) error {
	doc, err := marshal(v, "", term.IsTTY)
	if err != nil {
		return err
	}
	_, err = w.Write(append(doc, '\n'))
	return err
}

// jsonItems writes one array, an element at a time and on lines of its own.
type jsonItems[T any] struct {
	out    *bufio.Writer
	view   View[T]
	indent bool
	opened bool
}

func (j *jsonItems[T]) write(item T) error {
	prefix := ""
	if j.indent {
		prefix = "  "
	}
	doc, err := marshal(j.view.value(item), prefix, j.indent)
	if err != nil {
		return err
	}
	before := "[\n"
	if j.opened {
		before = ",\n"
	}
	j.opened = true
	if _, err := j.out.WriteString(before + prefix); err != nil {
		return err
	}
	_, err = j.out.Write(doc)
	return err
}

func (j *jsonItems[T]) finish() error {
	end := "[]\n"
	if j.opened {
		end = "\n]\n"
	}
	_, err := j.out.WriteString(end)
	return err
}

type jsonlItems[T any] struct {
	out  *bufio.Writer
	view View[T]
}

func (j *jsonlItems[T]) write(item T) error {
	return WriteJSON(j.out, Terminal{}, j.view.value(item))
}

func (j *jsonlItems[T]) finish() error { return nil }

func (v View[T]) value(item T) any {
	if v.JSON == nil {
		return item
	}
	return v.JSON(item)
}

func marshal(v any, prefix string, indent bool) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent(prefix, "  ")
	}
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return visibleJSON(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), nil
}

// visibleJSON spells unsafe characters as escapes. encoding/json does so for
// C0 only and lets DEL, C1 and bidi controls through to the terminal. In JSON
// anything beyond ASCII is inside a string, where the escape means the same.
func visibleJSON(doc []byte) []byte {
	if bytes.IndexFunc(doc, func(r rune) bool { return r == utf8.RuneError || invisible(r) }) < 0 {
		return doc
	}
	out := make([]byte, 0, len(doc)+16)
	for len(doc) > 0 {
		r, size := utf8.DecodeRune(doc)
		switch {
		case r == utf8.RuneError, r <= 0xffff && invisible(r):
			out = appendHex(append(out, `\u`...), uint64(r), 4)
		case invisible(r):
			high, low := utf16.EncodeRune(r)
			out = appendHex(append(out, `\u`...), uint64(high), 4)
			out = appendHex(append(out, `\u`...), uint64(low), 4)
		default:
			out = append(out, doc[:size]...)
		}
		doc = doc[size:]
	}
	return out
}
