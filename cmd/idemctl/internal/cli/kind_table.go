package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// rowDetail is a row of a table. Its content is shown on request only.
type rowDetail struct {
	Version  *uint64 `json:"version"` // nil: it is not inserted yet
	RowBytes int     `json:"row_bytes"`
	Pending  bool    `json:"pending"`

	row json.RawMessage
}

func describeRow(e *entry, _ time.Time) (detail, error) {
	var v struct {
		Version uint64          `json:"version"`
		Value   json.RawMessage `json:"value"`
		Pending string          `json:"pending"`
	}
	if err := json.Unmarshal(e.Value, &v); err != nil || v.Version == 0 && v.Pending == "" {
		return nil, unreadableError("a row")
	}
	d := rowDetail{Pending: v.Pending != ""}
	if v.Version != 0 {
		d.Version, d.RowBytes, d.row = &v.Version, len(v.Value), v.Value
	}
	return d, nil
}

func (d rowDetail) brief() string {
	if d.Version == nil {
		return "no row yet"
	}
	return "version " + strconv.FormatUint(*d.Version, 10)
}

func (d rowDetail) block(b *detailBlock) {
	if d.Version == nil {
		b.line("Row", "none yet: its insert is under way")
		return
	}
	b.line("Row version", strconv.FormatUint(*d.Version, 10))
	if d.Pending {
		b.line("Change", "under way")
	}
	var text bytes.Buffer
	if !b.content || json.Indent(&text, d.row, "", "  ") != nil {
		b.Add("Row", render.BytesCell(int64(d.RowBytes)))
		return
	}
	label := "Row"
	for line := range strings.SplitSeq(text.String(), "\n") {
		b.line(label, line)
		label = ""
	}
}

// uniqueDetail says which row has a value of a unique column. The value itself is
// not in the file.
type uniqueDetail struct {
	Column *string `json:"column"`
	Row    string  `json:"row"` // its key, or its id alone if the scope is none of a column
}

func describeUnique(e *entry, _ time.Time) (detail, error) {
	var v struct {
		Row string `json:"row"`
	}
	if err := json.Unmarshal(e.Value, &v); err != nil || v.Row == "" {
		return nil, unreadableError("a unique column")
	}
	const mark = ":unique:"
	d := uniqueDetail{Row: v.Row}
	if i := strings.LastIndex(e.Key.Scope, mark); i >= 0 {
		d.Row = e.Key.Scope[:i] + "/" + v.Row
		d.Column = optional(e.Key.Scope[i+len(mark):])
	}
	return d, nil
}

func (d uniqueDetail) brief() string { return d.Row }

func (d uniqueDetail) block(b *detailBlock) {
	if d.Column != nil {
		b.line("Column", *d.Column)
	}
	b.line("Row", d.Row)
}
