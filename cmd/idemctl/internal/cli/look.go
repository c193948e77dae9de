package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// look is how one command prints: the stream, the format and the times.
type look struct {
	term   render.Terminal
	format render.Format
	times  render.TimeFormat
}

// look reads the global flags that say how to print. allowed are the formats
// that the command knows; none means all.
func (a *app) look(allowed ...render.Format) (look, error) {
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
	for _, f := range allowed {
		if f == l.format {
			return l, nil
		}
	}
	if len(allowed) > 0 {
		return l, usage("output format %s is not available here", l.format)
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

// durationFlag is a flag in Go's duration syntax plus d and w, not negative.
type durationFlag struct{ value *time.Duration }

func newDurationFlag(value *time.Duration, initial time.Duration) durationFlag {
	*value = initial
	return durationFlag{value}
}

func (d durationFlag) Set(text string) error {
	value, err := render.ParseDuration(text)
	if err == nil && value < 0 {
		err = fmt.Errorf("invalid duration %q: it is negative", text)
	}
	if err == nil {
		*d.value = value
	}
	return err
}

func (d durationFlag) String() string {
	if d.value == nil || *d.value == 0 {
		return ""
	}
	return d.value.String()
}

func (d durationFlag) Type() string { return "DURATION" }
