package cli

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// block is the record as labelled lines. What is not there is left out.
func (c *getCommand) block(e *entry, l look, now time.Time) *render.KeyValue {
	var kv render.KeyValue
	line := func(label, value string) {
		if value != "" {
			kv.Add(label, render.Text(value))
		}
	}
	kv.Add("Key", render.Bold.Text(e.Key.String()))
	kv.Add("State", stateStyle(e.State).Text(stateText(e, now)))
	line("Kind", e.Kind)
	line("Attempt", fmt.Sprint(e.Attempt))
	line("Created", l.moment(e.CreatedAt, now))
	if e.Attempt > 1 {
		line("Started", l.moment(e.StartedAt, now))
	}
	line(endLabel(e), l.moment(e.UpdatedAt, now)+tookText(e))
	line("Lease", l.moment(e.LeaseUntil, now))
	line("Expires", l.moment(e.ExpiresAt, now))
	line("Owner", e.Owner)
	line("Trace", e.TraceID)
	line("Fingerprint", fingerprintText(e.Fingerprint))
	if e.Mismatches > 0 {
		kv.Add("Mismatches", render.Yellow.Text(fmt.Sprintf("%s with other content, about %d different", render.Count(int64(e.Mismatches)), e.DistinctMismatches)))
	}
	line("Replays", replaysText(e, l, now))
	line("Steps", stepsText(e))
	kv.Add("Value", c.valueCell(e))
	line("Error", e.Error)
	line("Note", e.Note)
	line("Version", fmt.Sprint(e.Version))
	kv.Add("Size", render.BytesCell(int64(e.Size)))
	if e.detail != nil {
		e.detail.block(&detailBlock{KeyValue: &kv, look: l, now: now, content: c.format == "auto"})
	}
	return &kv
}

// moment is a time with, on a terminal, how long ago that is.
func (l look) moment(t, now time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case l.times == render.TimeRelative && l.term.IsTTY:
		return render.TimeISO.Format(t, now) + " (" + render.Relative(t, now) + ")"
	}
	return l.times.Format(t, now)
}

func stateText(e *entry, now time.Time) string {
	switch {
	case e.Record.State != idem.Processing || e.State != idem.Interrupted.String():
		return e.State
	case e.OwnerAlive != nil && !*e.OwnerAlive:
		return e.State + ": its owner is gone"
	}
	return e.State + ": its lease is over since " + render.Age(e.overdue(now))
}

func endLabel(e *entry) string {
	switch {
	case e.Record.State == idem.Processing:
		return "Renewed"
	case e.settledByHand():
		return "Settled"
	case kindOf(e.Kind).standing:
		return "Updated"
	}
	return "Finished"
}

func tookText(e *entry) string {
	took, known := e.took()
	if !known {
		return ""
	}
	return ", took " + render.Age(took)
}

func fingerprintText(fp idem.Fingerprint) string {
	if fp.IsZero() {
		return "none: the key alone identifies the request"
	}
	return fp.String() + " of " + strings.Join(fp.Names(), ", ")
}

func replaysText(e *entry, l look, now time.Time) string {
	text := render.Count(int64(e.Replays))
	if !e.LastReplayAt.IsZero() {
		text += ", last " + l.times.Format(e.LastReplayAt, now)
	}
	return text
}

func stepsText(e *entry) string {
	if len(e.Steps) == 0 {
		return ""
	}
	text := strings.Join(stepNames(e), ", ") + " finished"
	if e.Resume {
		text += "; the next call goes on"
	}
	return text
}

func stepNames(e *entry) []string {
	names := make([]string, len(e.Steps))
	for i, s := range e.Steps {
		names[i] = s.Name
	}
	return names
}

// valueCell describes the value, or shows it where --format asks for it.
func (c *getCommand) valueCell(e *entry) render.Cell {
	_, isRow := e.detail.(rowDetail)
	switch {
	case e.ValueOmitted > 0:
		return render.Text(fmt.Sprintf("not kept: %s", render.Bytes(e.ValueOmitted)))
	case e.Value == nil:
		return render.Text("none")
	case c.format == "hex", c.format == "auto" && isBinary(e.Value):
		return render.Text(hex.EncodeToString(e.Value))
	case c.format == "base64":
		return render.Text(base64.StdEncoding.EncodeToString(e.Value))
	case c.format == "auto" && !isRow: // a row is shown indented, below
		return render.Text(string(e.Value))
	}
	exact := fmt.Sprintf("%s, sha256:%s", render.Bytes(int64(len(e.Value))), valueSum(e.Value))
	if e.Kind == recordKindRun {
		return render.Cell{Text: exact + " (--run-output prints what it printed)", Piped: exact}
	}
	return render.Text(exact)
}
