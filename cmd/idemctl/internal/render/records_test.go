package render

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

type file struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

func fileView() View[file] {
	return View[file]{
		Name: func(f file) string { return f.Path },
		Fields: []Field[file]{
			{Column: Column{Name: "path", Flex: true}, Cell: func(f file) Cell { return Text(f.Path) }},
			{Column: Column{Name: "size", Right: true}, Cell: func(f file) Cell { return BytesCell(f.Size) }, CSVName: "size_bytes"},
			{Column: Column{Name: "blocks", Right: true}, Cell: func(f file) Cell { return CountCell(f.Size / 512) }, Wide: true},
			{Column: Column{Name: "big"}, Cell: func(file) Cell { return Text("-") }, CSVName: "-"},
			{Column: Column{Name: "bits"}, CSV: func(f file) string { return strconv.FormatInt(f.Size*8, 10) }},
		},
	}
}

func sequence(files []file, end error) iter.Seq2[file, error] {
	return func(yield func(file, error) bool) {
		for _, f := range files {
			if !yield(f, nil) {
				return
			}
		}
		if end != nil {
			yield(file{}, end)
		}
	}
}

func list(t *testing.T, opts Options, files ...file) string {
	t.Helper()
	var out strings.Builder
	records, err := NewRecords(&out, opts, fileView())
	require.NoError(t, err)
	require.NoError(t, records.WriteAll(sequence(files, nil)))
	require.Equal(t, len(files), records.Count())
	return out.String()
}

func TestRecordsInEveryFormat(t *testing.T) {
	t.Parallel()
	files := []file{{"a<b>.txt", 4096}, {"b", 182}}
	tests := []struct {
		name  string
		opts  Options
		want  string
		empty string
	}{
		{"default is a table", Options{}, "a<b>.txt\t4096\t-\nb\t182\t-\n", ""},
		{"piped table", Options{Format: FormatTable, Header: true},
			"PATH\tSIZE\tBIG\na<b>.txt\t4096\t-\nb\t182\t-\n", "PATH\tSIZE\tBIG\n"},
		{"table", Options{Format: FormatTable, Terminal: wideTTY()},
			"PATH         SIZE  BIG\na<b>.txt  4.0 KiB  -\nb           182 B  -\n", ""},
		{"wide", Options{Format: FormatWide, Terminal: wideTTY()},
			"PATH         SIZE  BLOCKS  BIG\na<b>.txt  4.0 KiB       8  -\nb           182 B       0  -\n", ""},
		{"json", Options{Format: FormatJSON},
			"[\n{\"path\":\"a<b>.txt\",\"size\":4096},\n{\"path\":\"b\",\"size\":182}\n]\n", "[]\n"},
		{"json on a terminal", Options{Format: FormatJSON, Terminal: wideTTY()}, `[
  {
    "path": "a<b>.txt",
    "size": 4096
  },
  {
    "path": "b",
    "size": 182
  }
]
`, "[]\n"},
		{"jsonl", Options{Format: FormatJSONL, Terminal: wideTTY()},
			"{\"path\":\"a<b>.txt\",\"size\":4096}\n{\"path\":\"b\",\"size\":182}\n", ""},
		{"csv", Options{Format: FormatCSV},
			"path,size_bytes,blocks,bits\na<b>.txt,4096,8,32768\nb,182,0,1456\n", "path,size_bytes,blocks,bits\n"},
		{"name", Options{Format: FormatName}, "a<b>.txt\nb\n", ""},
		{"name with NUL", Options{Format: FormatName, NUL: true}, "a<b>.txt\x00b\x00", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, list(t, tt.opts, files...))
			require.Equal(t, tt.empty, list(t, tt.opts))
		})
	}
}

// hostile holds every byte and some characters that hide or reorder text.
func hostile() string {
	var s strings.Builder
	for b := range 256 {
		if b != '\r' { // a csv.Reader drops \r before \n
			s.WriteByte(byte(b))
		}
	}
	return s.String() + "\u009b\u202e\U000e0041\u2028\",\\"
}

func TestHostileTextOnTerminal(t *testing.T) {
	t.Parallel()
	for _, name := range FormatNames() {
		format, err := ParseFormat(name)
		require.NoError(t, err)
		out := list(t, Options{Format: format, Terminal: wideTTY(), Full: true}, file{Path: hostile()})
		for line := range strings.Lines(out) {
			requireHarmless(t, strings.TrimSuffix(line, "\n"))
		}
	}
}

func TestHostileTextRoundTrips(t *testing.T) {
	t.Parallel()
	text := strings.ToValidUTF8(hostile(), "")

	rows, err := csv.NewReader(strings.NewReader(list(t, Options{Format: FormatCSV}, file{Path: text}))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, text, rows[1][0])

	var files []file
	require.NoError(t, json.Unmarshal([]byte(list(t, Options{Format: FormatJSON}, file{Path: text})), &files))
	require.Equal(t, []file{{Path: text}}, files)

	line := list(t, Options{}, file{Path: text})
	require.Equal(t, 1, strings.Count(line, "\n"))
	require.Equal(t, 2, strings.Count(line, "\t"))
	require.Equal(t, text, unescape(t, line[:strings.IndexByte(line, '\t')]))
}

func TestInvalidUTF8InCSVAndJSON(t *testing.T) {
	t.Parallel()
	require.Contains(t, list(t, Options{Format: FormatCSV}, file{Path: "k\xff"}), `k\xff,0,`)

	var out strings.Builder
	require.NoError(t, WriteJSON(&out, Terminal{}, json.RawMessage("\"\xff\"")))
	require.True(t, utf8.ValidString(out.String()))
	require.Equal(t, `"\ufffd"`+"\n", out.String())
}

func TestMarshalErrors(t *testing.T) {
	t.Parallel()
	view := View[file]{JSON: func(file) any { return make(chan int) }}
	for _, format := range []Format{FormatJSON, FormatJSONL} {
		var out strings.Builder
		records, err := NewRecords(&out, Options{Format: format}, view)
		require.NoError(t, err)
		require.ErrorContains(t, records.WriteAll(sequence([]file{{}}, nil)), "encode JSON: ")
		require.Empty(t, out.String())
		require.Zero(t, records.Count())
	}
}

func TestNameHoldingTheSeparatorIsSkipped(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		opts      Options
		want, err string
	}{
		{"newline", Options{Format: FormatName}, "a\nb\x00c\n",
			`left out 1 names, first "d\ne", try -0: name contains the separator`},
		{"NUL", Options{Format: FormatName, NUL: true}, "a\x00d\ne\x00",
			`left out 1 names, first "b\x00c", try -o json: name contains the separator`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			records, err := NewRecords(&out, tt.opts, fileView())
			require.NoError(t, err)
			err = records.WriteAll(sequence([]file{{Path: "a"}, {Path: "b\x00c"}, {Path: "d\ne"}}, nil))
			require.ErrorIs(t, err, ErrNameSkipped)
			require.EqualError(t, err, tt.err)
			require.Equal(t, tt.want, out.String())
		})
	}
	require.Equal(t, "d\\ne\n", list(t, Options{Format: FormatName, Terminal: wideTTY()}, file{Path: "d\ne"}))
}

func TestWriteAllStopsAtAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var out strings.Builder
	records, err := NewRecords(&out, Options{Format: FormatJSON}, fileView())
	require.NoError(t, err)
	require.ErrorIs(t, records.WriteAll(sequence([]file{{Path: "a"}}, broken)), broken)
	require.Equal(t, "[\n{\"path\":\"a\",\"size\":0}", out.String())
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	for _, name := range FormatNames() {
		format, err := ParseFormat(name)
		require.NoError(t, err)
		for _, term := range []Terminal{{}, wideTTY()} {
			records, err := NewRecords(brokenPipe{}, Options{Format: format, Terminal: term}, fileView())
			require.NoError(t, err)
			err = records.WriteAll(sequence(make([]file, 10_000), nil))
			require.ErrorIs(t, err, io.ErrClosedPipe, name)
		}
	}
}

// longestWrite records how much a writer was handed at once.
type longestWrite struct{ bytes int }

func (w *longestWrite) Write(p []byte) (int, error) {
	w.bytes = max(w.bytes, len(p))
	return len(p), nil
}

func TestPipedFormatsAreStreamed(t *testing.T) {
	t.Parallel()
	for _, name := range FormatNames() {
		format, err := ParseFormat(name)
		require.NoError(t, err)
		var out longestWrite
		records, err := NewRecords(&out, Options{Format: format}, fileView())
		require.NoError(t, err)
		for range 10_000 {
			require.NoError(t, records.Write(file{Path: "a/b/c"}))
		}
		require.NotZero(t, out.bytes, "%s wrote nothing before Close", name)
		require.LessOrEqual(t, out.bytes, 4096, name)
		require.NoError(t, records.Close())
	}
}

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for _, name := range FormatNames() {
		format, err := ParseFormat(name)
		require.NoError(t, err)
		require.Equal(t, name, format.String())
	}
	format, err := ParseFormat("")
	require.NoError(t, err)
	require.Equal(t, FormatTable, format)

	_, err = ParseFormat("xml")
	require.EqualError(t, err, `unknown output format "xml": use table, wide, json, jsonl, csv or name`)
}

func TestNewRecordsErrors(t *testing.T) {
	t.Parallel()
	_, err := NewRecords(io.Discard, Options{Format: FormatName}, View[file]{})
	require.EqualError(t, err, "output format name is not available here")
	_, err = NewRecords(io.Discard, Options{Format: 99}, fileView())
	require.EqualError(t, err, "output format invalid is not available here")
}
