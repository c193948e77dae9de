package fsm_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
)

var update = flag.Bool("update", false, "write the golden files anew")

// definitions are those whose pictures are kept in testdata.
func definitions() map[string]fsm.Definition {
	return map[string]fsm.Definition{
		"order": orderStates(),
		"door": {Initial: "open", Transitions: map[string][]string{
			"open": {"closed"}, "closed": {"open", "locked"}, "locked": {"closed"},
		}},
		"ticket": {Initial: "NEW", Transitions: map[string][]string{
			"NEW":       {"TRIAGED", "REJECTED", "DUPLICATE"},
			"TRIAGED":   {"ASSIGNED", "REJECTED"},
			"ASSIGNED":  {"IN_REVIEW", "TRIAGED"},
			"IN_REVIEW": {"DONE", "ASSIGNED", "NEW"},
			"DONE":      {"NEW"},
			"REJECTED":  {"DUPLICATE"},
			"DUPLICATE": nil,
		}},
		"words": {Initial: "end", Transitions: map[string][]string{
			"end": {"state", "支付-完成"}, "state": {"1.note_"}, "1.note_": nil, "支付-完成": {"1.note_"},
		}},
		"single": {Initial: "only", Transitions: map[string][]string{"only": nil}},
	}
}

func TestPictures(t *testing.T) {
	t.Parallel()
	for name, def := range definitions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), def)
			again := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), def)
			require.Equal(t, m.SVG(), again.SVG())
			require.Equal(t, m.Mermaid(), again.Mermaid())
			golden(t, name+".svg", m.SVG())
			golden(t, name+".mmd", m.Mermaid())
			requireShows(t, m.SVG(), def)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), got)
}

// requireShows wants a document that parses, with a text for every state and a
// line for every transition, and nothing from elsewhere.
func requireShows(t *testing.T, svg string, def fsm.Definition) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(svg))
	texts := make(map[string]bool)
	lines, element := 0, ""
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			element = token.Name.Local
			for _, a := range token.Attr {
				require.NotContains(t, []string{"href", "src", "style", "onload"}, a.Name.Local)
				if a.Name.Local == "marker-end" {
					lines++
				}
			}
		case xml.CharData:
			if element == "text" {
				texts[string(token)] = true
			}
		case xml.EndElement:
			element = ""
		}
	}
	transitions := 0
	for state, next := range def.Transitions {
		require.True(t, texts[state], state)
		transitions += len(next)
	}
	require.Len(t, texts, len(def.Transitions))
	require.Equal(t, transitions+1, lines, "one more leads to the initial state")
}

// TestMermaidFollowsWhatIsDeclared reads the text of the diagram back.
func TestMermaidFollowsWhatIsDeclared(t *testing.T) {
	t.Parallel()
	m := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), orderStates())
	require.Equal(t, `stateDiagram-v2
    direction LR
    state "PENDING" as s0
    state "PAID" as s1
    state "CANCELED" as s2
    state "SHIPPED" as s3
    state "COMPLETED" as s4
    [*] --> s0
    s0 --> s1
    s0 --> s2
    s1 --> s3
    s1 --> s2
    s2 --> [*]
    s3 --> s4
    s4 --> [*]
`, m.Mermaid())
}
