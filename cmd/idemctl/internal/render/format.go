package render

import (
	"fmt"
	"strings"
)

// Format is an output format for lists. The zero value is invalid.
type Format uint8

// The output formats.
const (
	// FormatTable is a table for people, tab-separated in a pipe.
	FormatTable Format = iota + 1
	// FormatWide is FormatTable with more columns.
	FormatWide
	// FormatJSON is one JSON array.
	FormatJSON
	// FormatJSONL is one JSON object a line.
	FormatJSONL
	// FormatCSV is comma-separated values under a header (RFC 4180).
	FormatCSV
	// FormatName is the bare names.
	FormatName
)

var formatNames = [...]string{"table", "wide", "json", "jsonl", "csv", "name"}

// FormatNames lists what [ParseFormat] reads, for help and completion.
func FormatNames() []string { return append([]string(nil), formatNames[:]...) }

// ParseFormat reads the name of a format; the empty string is FormatTable. The
// error for any other name lists the choices.
func ParseFormat(s string) (Format, error) {
	if s == "" {
		return FormatTable, nil
	}
	for i, name := range formatNames {
		if s == name {
			return Format(i + 1), nil
		}
	}
	last := len(formatNames) - 1
	return 0, fmt.Errorf("unknown output format %q: use %s or %s",
		s, strings.Join(formatNames[:last], ", "), formatNames[last])
}

// String is the name of the format.
func (f Format) String() string {
	if f < FormatTable || f > FormatName {
		return "invalid"
	}
	return formatNames[f-1]
}
