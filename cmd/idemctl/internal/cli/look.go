package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// look is how one command prints: the stream, the format and the times.
type look struct {
	term   render.Terminal
	format render.Format
	times  render.TimeFormat
}

// outputFormats are what -o takes, by command.
func outputFormats(command string) []render.Format {
	switch command {
	case "ls", "get", "outbox ls":
		return []render.Format{
			render.FormatTable, render.FormatWide, render.FormatJSON, render.FormatJSONL, render.FormatCSV, render.FormatName,
		}
	case "run", "resolve", "proxy", "token consume": // what they print is the command's, or a sentence
		return []render.Format{render.FormatTable}
	}
	return []render.Format{render.FormatTable, render.FormatWide, render.FormatJSON, render.FormatJSONL}
}

// look reads the global flags that say how a command is to print.
func (a *app) look(command string) (look, error) {
	var l look
	var err error
	if l.term, err = render.Detect(a.out, a.getenv, a.flags.color); err != nil {
		return l, usage("%w", err)
	}
	if l.format, err = render.ParseFormat(a.flags.output); err != nil {
		return l, usage("%w", err)
	}
	if l.times, err = render.ParseTimeFormat(a.flags.time, l.term); err != nil {
		return l, usage("%w", err)
	}
	if allowed := outputFormats(command); !slices.Contains(allowed, l.format) {
		var names []string
		for _, f := range allowed {
			names = append(names, f.String())
		}
		return l, usage("-o %s is not available here: %s has %s", l.format, command, strings.Join(names, ", "))
	}
	return l, nil
}

func (l look) options(a *app) render.Options {
	return render.Options{Terminal: l.term, Format: l.format, Header: a.flags.header, Full: a.flags.full}
}

// isJSON reports whether one JSON document is asked for.
func (l look) isJSON() bool { return l.format == render.FormatJSON || l.format == render.FormatJSONL }

// writeJSON prints one document: indented for eyes, one line with -o jsonl.
func (l look) writeJSON(w io.Writer, v any) error {
	term := l.term
	if l.format == render.FormatJSONL {
		term = render.Terminal{}
	}
	return render.WriteJSON(w, term, v)
}

// mayAsk reports whether a person can be asked.
func (a *app) mayAsk() bool { return !a.flags.noInput && render.IsTTY(a.in) && render.IsTTY(a.err) }
