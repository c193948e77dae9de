package cli

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// view says how an event looks in a list.
func (c *outboxLsCommand) view(l look, now time.Time) render.View[outboxEntry] {
	type field = render.Field[outboxEntry]
	text := func(name string, of func(e *outboxEntry) string) field {
		return field{Column: render.Column{Name: name, Flex: true}, Cell: func(e outboxEntry) render.Cell { return orNone(of(&e)) }}
	}
	at := func(name string, of func(e *outboxEntry) time.Time) field {
		return field{Column: render.Column{Name: name}, Cell: func(e outboxEntry) render.Cell { return l.timeCell(of(&e), now) }}
	}
	number := func(name string, cell func(int64) render.Cell, of func(e *outboxEntry) int64) field {
		return field{Column: render.Column{Name: name, Right: true}, Cell: func(e outboxEntry) render.Cell {
			if e.problem != "" {
				return render.NoCell()
			}
			return cell(of(&e))
		}}
	}
	wide := func(f field) field {
		f.Wide = true
		return f
	}
	fault := text("error", func(e *outboxEntry) string {
		if e.problem != "" {
			return "unreadable: " + e.problem
		}
		return e.lastError
	})
	aggregate := text("aggregate", func(e *outboxEntry) string {
		if e.event.AggregateType == "" {
			return ""
		}
		return e.event.AggregateType + "/" + e.event.AggregateID
	})
	aggregate.CSVName = "-"
	fields := []field{
		{Column: render.Column{Name: "number", Right: true}, Cell: func(e outboxEntry) render.Cell { return numberCell(&e) }},
		text("id", func(e *outboxEntry) string { return e.event.ID }),
		aggregate,
		{CSVName: "aggregate_type", CSV: func(e outboxEntry) string { return e.event.AggregateType }},
		{CSVName: "aggregate_id", CSV: func(e outboxEntry) string { return e.event.AggregateID }},
		text("type", func(e *outboxEntry) string { return e.event.Type }),
		at("created", func(e *outboxEntry) time.Time { return e.createdAt() }),
		number("attempts", render.CountCell, func(e *outboxEntry) int64 { return int64(e.attempts) }),
		number("payload", render.BytesCell, func(e *outboxEntry) int64 { return int64(e.payload) }),
	}
	if c.parked {
		fields = slices.Insert(fields, 7, at("parked", func(e *outboxEntry) time.Time { return e.parkedAt }))
	}
	return render.View[outboxEntry]{
		Name:   func(e outboxEntry) string { return e.event.ID },
		JSON:   func(e outboxEntry) any { return c.json(&e) },
		Fields: append(fields, fault, wide(text("trace", func(e *outboxEntry) string { return e.event.TraceID }))),
	}
}

// numberCell has no separators: it is what --after takes.
func numberCell(e *outboxEntry) render.Cell {
	if e.number == 0 {
		return render.NoCell()
	}
	return render.Text(strconv.FormatUint(e.number, 10))
}

// createdAt is zero for bytes that are no event, which have none.
func (e *outboxEntry) createdAt() time.Time {
	if e.event.AggregateType == "" {
		return time.Time{}
	}
	return e.event.CreatedAt
}

// outboxEntryJSON is an event in JSON; docs/cli.md describes it.
type outboxEntryJSON struct {
	Number        uint64             `json:"number"`
	ID            *string            `json:"id"`
	AggregateType *string            `json:"aggregate_type"`
	AggregateID   *string            `json:"aggregate_id"`
	Type          *string            `json:"type"`
	CreatedAt     *string            `json:"created_at"`
	TraceID       *string            `json:"trace_id"`
	Attempts      int                `json:"attempts"`
	Error         *string            `json:"error"`
	ParkedAt      *string            `json:"parked_at"`
	PayloadBytes  int                `json:"payload_bytes"`
	HeaderNames   []string           `json:"header_names"`
	Problem       *string            `json:"problem"`
	Payload       *[]byte            `json:"payload,omitempty"`
	Headers       *map[string]string `json:"headers,omitempty"`
}

func (c *outboxLsCommand) json(e *outboxEntry) outboxEntryJSON {
	j := outboxEntryJSON{
		Number: e.number, ID: optional(e.event.ID), AggregateType: optional(e.event.AggregateType),
		AggregateID: optional(e.event.AggregateID), Type: optional(e.event.Type), CreatedAt: jsonTime(e.createdAt()),
		TraceID: optional(e.event.TraceID), Attempts: e.attempts, Error: optional(e.lastError), ParkedAt: jsonTime(e.parkedAt),
		PayloadBytes: e.payload, HeaderNames: slices.Sorted(maps.Keys(e.event.Headers)), Problem: optional(e.problem),
	}
	if j.HeaderNames == nil {
		j.HeaderNames = []string{}
	}
	if c.payload {
		headers := e.event.Headers
		if headers == nil {
			headers = map[string]string{}
		}
		j.Payload, j.Headers = &e.event.Payload, &headers
	}
	return j
}
