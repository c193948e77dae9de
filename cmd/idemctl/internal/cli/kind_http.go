package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/cmd/idemctl/internal/runner"
	"github.com/idembolt/idem/idemhttp"
)

// httpDetail is a stored response. Its headers are left out but for one: they may
// hold cookies.
type httpDetail struct {
	Status      int     `json:"status"`
	ContentType *string `json:"content_type"`
	Body        string  `json:"body"`
	BodyBytes   int64   `json:"body_bytes"`
	Chunks      int     `json:"chunks"`
}

func describeHTTP(e *entry, _ time.Time) (detail, error) {
	if e.Value == nil {
		return nil, nil
	}
	var r idemhttp.Response
	if err := r.UnmarshalBinary(e.Value); err != nil {
		return nil, unreadableError("a stored response")
	}
	d := httpDetail{
		Status: r.Status, ContentType: optional(r.Header.Get("Content-Type")), Body: omissionName(r.Omitted),
		BodyBytes: r.Length, Chunks: r.Chunks,
	}
	if r.Omitted == idemhttp.Kept {
		d.BodyBytes = int64(len(r.Body))
	}
	return d, nil
}

// omissionName says what became of a body. The names are part of the JSON.
func omissionName(o idemhttp.Omission) string {
	switch o {
	case idemhttp.Kept:
		return "kept"
	case idemhttp.TooLarge:
		return "too_large"
	case idemhttp.Streamed:
		return "streamed"
	case idemhttp.Hijacked:
		return "hijacked"
	case idemhttp.Withheld:
		return "withheld"
	case idemhttp.InChunks:
		return "in_chunks"
	}
	return "unknown"
}

func (d httpDetail) brief() string { return strconv.Itoa(d.Status) }

func (d httpDetail) block(b *detailBlock) {
	b.line("Status", strconv.Itoa(d.Status))
	if d.ContentType != nil {
		b.line("Content type", *d.ContentType)
	}
	sent := render.Bytes(d.BodyBytes)
	switch d.Body {
	case "kept":
		b.Add("Body", render.BytesCell(d.BodyBytes))
	case "too_large":
		b.line("Body", "not kept: "+sent+" were sent, too much to store or at a time when it could not be stored")
	case "streamed":
		b.line("Body", "not kept: it was sent before it was complete, "+sent)
	case "hijacked":
		b.line("Body", "not kept: the handler took the connection over")
	case "withheld":
		b.line("Body", "not kept: bodies are not stored here, "+sent+" were sent")
	default:
		b.line("Body", fmt.Sprintf("%s in %s of its own", sent, plural(d.Chunks, "record")))
	}
}

// chunkDetail is a part of a body that is too large for one record.
type chunkDetail struct {
	Part      *int   `json:"part"` // from 1; nil if the key is not one of a part
	Set       *int64 `json:"set"`  // the version of the attempt that has sent it
	BodyBytes int    `json:"body_bytes"`
}

func describeChunk(e *entry, _ time.Time) (detail, error) {
	d := chunkDetail{BodyBytes: len(e.Value)}
	if m := regexp.MustCompile(`^·[0-9a-f]{32}·(\d{1,18})·(\d{1,9})$`).FindStringSubmatch(e.Key.ID); m != nil {
		set, _ := strconv.ParseInt(m[1], 10, 64) // neither can fail: so many digits fit
		part, _ := strconv.Atoi(m[2])
		part++
		d.Part, d.Set = &part, &set
	}
	return d, nil
}

func (d chunkDetail) brief() string {
	if d.Part == nil {
		return ""
	}
	return fmt.Sprintf("part %d", *d.Part)
}

func (d chunkDetail) block(b *detailBlock) {
	text := "of a response body"
	if d.Part != nil {
		text = fmt.Sprintf("%d of a response body, sent by the attempt of version %d", *d.Part, *d.Set)
	}
	b.line("Part", text)
	b.Add("Body", render.BytesCell(int64(d.BodyBytes)))
}

// intentDetail is an intent of a client. The key that it sends is its value, which
// is not shown: who has it can ask the server for the answer.
type intentDetail struct {
	Open bool `json:"open"`
}

func describeIntent(e *entry, _ time.Time) (detail, error) {
	if len(e.Value) == 0 {
		return nil, unreadableError("an intent")
	}
	return intentDetail{Open: e.Record.State == idem.Processing}, nil
}

func (d intentDetail) brief() string {
	if d.Open {
		return "open"
	}
	return "not open"
}

func (d intentDetail) block(b *detailBlock) {
	if !d.Open {
		b.line("Intent", "not open: it was settled by hand")
		return
	}
	b.Add("Intent", render.Cell{Text: "open (--value prints the key that it sends)", Piped: "open"})
}

// runDetail is what became of a command of idemctl run.
type runDetail struct {
	ExitCode      int   `json:"exit_code"`
	OutputBytes   int64 `json:"output_bytes"`
	OutputNotKept int64 `json:"output_not_kept"`
}

func describeRun(e *entry, _ time.Time) (detail, error) {
	if e.Value == nil {
		return nil, nil
	}
	var r runner.Result
	if err := json.Unmarshal(e.Value, &r); err != nil || r.StartedAt.IsZero() {
		return nil, unreadableError("a run")
	}
	d := runDetail{ExitCode: r.ExitCode, OutputNotKept: r.NotKept}
	for _, c := range r.Chunks {
		d.OutputBytes += int64(len(c.Data))
	}
	return d, nil
}

func (d runDetail) brief() string { return "exit " + strconv.Itoa(d.ExitCode) }

func (d runDetail) block(b *detailBlock) {
	b.line("Exit code", strconv.Itoa(d.ExitCode))
	if d.OutputNotKept > 0 {
		b.line("Output", fmt.Sprintf("%s, and %s that were not kept", render.Bytes(d.OutputBytes), render.Bytes(d.OutputNotKept)))
		return
	}
	b.Add("Output", render.BytesCell(d.OutputBytes))
}
