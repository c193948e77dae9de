package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

const recordKindFSM = "fsm"

// fsmDetail is the state of an object and how it came there.
type fsmDetail struct {
	State      string        `json:"state"`
	Definition string        `json:"definition"`
	History    []fsmStepJSON `json:"history"`
	Dropped    int           `json:"dropped"`
	Passed     []string      `json:"passed"`
}

// fsmStepJSON is one transition. Of what the caller gave only the size is told.
type fsmStepJSON struct {
	From         string  `json:"from"`
	To           string  `json:"to"`
	At           *string `json:"at"`
	TraceID      *string `json:"trace_id"`
	PayloadBytes int     `json:"payload_bytes"`

	at time.Time
}

func describeFSM(e *entry, _ time.Time) (detail, error) {
	d, err := readFSM(e.Value)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func readFSM(value []byte) (*fsmDetail, error) {
	var v struct {
		State      string `json:"state"`
		Definition string `json:"definition"`
		History    []struct {
			From    string    `json:"from"`
			To      string    `json:"to"`
			At      time.Time `json:"at"`
			TraceID string    `json:"trace"`
			Payload []byte    `json:"payload"`
		} `json:"history"`
		Dropped int      `json:"dropped"`
		Passed  []string `json:"passed"`
	}
	if err := json.Unmarshal(value, &v); err != nil || v.State == "" {
		return nil, unreadableError("a state machine")
	}
	d := &fsmDetail{
		State: v.State, Definition: v.Definition, History: []fsmStepJSON{}, Dropped: v.Dropped, Passed: append([]string{}, v.Passed...),
	}
	for _, s := range v.History {
		d.History = append(d.History, fsmStepJSON{
			From: s.From, To: s.To, At: jsonTime(s.At), TraceID: optional(s.TraceID), PayloadBytes: len(s.Payload), at: s.At,
		})
	}
	return d, nil
}

// number is that of the transition at i of the history, from 1: those that are not
// kept count.
func (d *fsmDetail) number(i int) int { return d.Dropped + i + 1 }

func (d *fsmDetail) brief() string { return d.State }

func (d *fsmDetail) block(b *detailBlock) {
	b.Add("In state", render.Bold.Text(d.State))
	b.line("Definition", d.Definition)
	if d.Dropped > 0 {
		b.line("Not kept", fmt.Sprintf("the first %s", plural(d.Dropped, "transition")))
	}
	for i, s := range d.History {
		text := s.From + " → " + s.To
		if !s.at.IsZero() {
			text += ", " + b.look.moment(s.at, b.now)
		}
		if s.TraceID != nil {
			text += ", trace " + *s.TraceID
		}
		if s.PayloadBytes > 0 {
			text += ", payload " + render.Bytes(int64(s.PayloadBytes))
		}
		b.line(fmt.Sprintf("Step %d", d.number(i)), text)
	}
}
