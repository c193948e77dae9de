package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

func newFSMCommand(a *app) *cobra.Command {
	return newFamily(&cobra.Command{
		Use:   "fsm",
		Short: "Show the states of objects",
		Long: `Objects whose state is kept by package fsm. The file holds their states and
histories, not the definition of the machine: for a picture of that call
Machine.Mermaid or Machine.SVG in the program that has it.`,
		Example: `  idemctl fsm show orders/o-1042
  idemctl ls orders/ --kind fsm -o wide`,
	}, newFSMShowCommand(a))
}

func newFSMShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "Show the state of an object and its history",
		Long: `Shows the state of an object and the transitions that led to it, the oldest first.
Of what callers gave along only the size is shown; idemctl get --value prints the
whole value.

The file does not hold the definition of the machine, so there is no picture of it
here: call Machine.Mermaid or Machine.SVG in the program that has it.

Exit code 3 means that there is no record.`,
		Example: `  idemctl fsm show orders/o-1042
  idemctl fsm show orders/o-1042 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.showFSM(cmd.Context(), args[0]) },

		ValidArgsFunction: a.completeKind(recordKindFSM),
	}
}

// fsmJSON is an object in JSON.
type fsmJSON struct {
	Key string `json:"key"`
	*fsmDetail
	Version   uint64  `json:"version"`
	CreatedAt *string `json:"created_at"`
	UpdatedAt *string `json:"updated_at"`
	ExpiresAt *string `json:"expires_at"`
}

func (a *app) showFSM(ctx context.Context, text string) error {
	key, err := idem.ParseKey(text)
	if err != nil {
		return err
	}
	l, err := a.look("fsm show")
	if err != nil {
		return err
	}
	rec, now, err := a.readFSMRecord(ctx, key)
	if err != nil {
		return err
	}
	d, err := readFSM(rec.Value)
	if err != nil {
		return fail(exitFailure, a.keyHint("get", key, ""), "%q cannot be read: %w", key.String(), err)
	}
	if l.isJSON() {
		return l.writeJSON(a.out, fsmJSON{key.String(), d, rec.Version, jsonTime(rec.CreatedAt), jsonTime(rec.UpdatedAt), jsonTime(rec.ExpiresAt)})
	}
	p := page{out: a.out, look: l, app: a}
	p.fsm(&rec, d, now)
	return p.err
}

func (a *app) readFSMRecord(ctx context.Context, key idem.Key) (rec idem.Record, now time.Time, err error) {
	s, err := a.openRead(ctx)
	if err != nil {
		return rec, now, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	rec, err = s.Get(ctx, key)
	switch {
	case errors.Is(err, idem.ErrNotFound):
		err = notFound(ctx, s, key)
	case err == nil && rec.Kind != recordKindFSM:
		err = fail(exitFailure, a.keyHint("get", key, ""), "%q is no object of a state machine but of kind %q", key.String(), rec.Kind)
	}
	return rec, s.Now(), err
}

// fsm shows an object: what it is, and under that its history.
func (p *page) fsm(rec *idem.Record, d *fsmDetail, now time.Time) {
	b := detailBlock{KeyValue: &render.KeyValue{}, look: p.look, now: now}
	b.Add("Key", render.Bold.Text(rec.Key.String()))
	b.Add("State", render.Bold.Text(d.State))
	b.line("Definition", d.Definition)
	b.moment("Created", rec.CreatedAt)
	b.moment("Updated", rec.UpdatedAt)
	b.moment("Expires", rec.ExpiresAt)
	b.Add("Transitions", render.CountCell(int64(d.Dropped+len(d.History))))
	if d.Dropped > 0 {
		b.Add("Not kept", render.CountCell(int64(d.Dropped)))
	}
	if p.err = b.Render(p.out, p.look.term); len(d.History) == 0 {
		return
	}
	p.line("")
	t := render.Table{Columns: []render.Column{
		{Name: "step", Right: true}, {Name: "from", Flex: true}, {Name: "to", Flex: true}, {Name: "at"},
		{Name: "trace", Flex: true}, {Name: "payload", Right: true},
	}}
	for i, s := range d.History {
		trace, payload := render.NoCell(), render.NoCell()
		if s.TraceID != nil {
			trace = render.Text(*s.TraceID)
		}
		if s.PayloadBytes > 0 {
			payload = render.BytesCell(int64(s.PayloadBytes))
		}
		t.AddRow(render.CountCell(int64(d.number(i))), render.Text(s.From), render.Text(s.To), p.look.timeCell(s.at, now), trace, payload)
	}
	p.table(&t)
}
