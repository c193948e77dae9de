package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/outbox"
)

// completeParked offers the ids of parked events.
func (c *outboxCommand) completeParked(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, func(ctx context.Context, s *idem.BoltStore) (ids []string) {
		o, err := c.of(s)
		if err != nil {
			return nil
		}
		for p, err := range o.Parked(ctx) {
			if ctx.Err() != nil || len(ids) == completionKeys {
				break
			}
			if id := p.Event.ID; err == nil && strings.HasPrefix(id, prefix) && !slices.Contains(args, id) {
				ids = append(ids, id)
			}
		}
		return ids
	})
}

func newOutboxRetryCommand(a *app) *cobra.Command {
	c := &outboxCommand{app: a}
	cmd := &cobra.Command{
		Use:   "retry ID…",
		Short: "Publish parked events after all",
		Long: `Puts parked events back, at the end of the outbox and without failed attempts: the
relay publishes them after what waits already, under the same ids.

Exit code 3 means that no parked event has one of the ids, 5 that this is so for
some, or that some were no events to begin with; the others are put back.`,
		Example: `  idemctl outbox retry 0199f0a2-7c1e-7b3a-9d52-2f6a1c0e4b11
  idemctl outbox ls --parked --limit 0 -o name | xargs -d '\n' idemctl outbox retry --`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeParked,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.retry(cmd.Context(), args) },
	}
	c.addFlags(cmd)
	return cmd
}

// retriedJSON is what has become of the ids of a retry.
type retriedJSON struct {
	Bucket  string   `json:"bucket"`
	Retried []string `json:"retried"`
	Missing []string `json:"missing"`
	Refused []string `json:"refused"` // no events, see outbox.ParkedEvent
}

func (c *outboxCommand) retry(ctx context.Context, ids []string) error {
	l, err := c.look("outbox retry")
	if err != nil {
		return err
	}
	r := retriedJSON{Bucket: c.bucket, Retried: []string{}, Missing: []string{}, Refused: []string{}}
	err = c.write(ctx, unique(ids), func(o *outbox.Outbox, id string) error {
		err := o.Retry(ctx, id)
		switch {
		case err == nil:
			r.Retried = append(r.Retried, id)
		case errors.Is(err, outbox.ErrNotParked):
			r.Missing = append(r.Missing, id)
		case notAnEvent(err):
			r.Refused = append(r.Refused, id)
		default:
			return err
		}
		return nil
	})
	if l.isJSON() {
		err = errors.Join(err, l.writeJSON(c.out, r))
	} else if len(r.Retried) > 0 {
		c.note("Put back %s, at the end of %s.", plural(len(r.Retried), "event"), render.Escape(c.bucket))
	}
	if err != nil {
		return err
	}
	return parkedError(len(r.Retried), r.Missing, r.Refused)
}

// parkedError is the exit code of a retry or a drop that has come to its end.
func parkedError(done int, missing, refused []string) error {
	var reasons []string
	e := &exitError{code: exitPartial}
	if len(missing) > 0 {
		reasons = append(reasons, "no parked event is "+strings.Join(quoteAll(missing), ", "))
	}
	if len(refused) > 0 {
		reasons = append(reasons, strings.Join(quoteAll(refused), ", ")+" cannot be published: the bytes are no event")
	}
	switch {
	case len(reasons) == 0:
		return nil
	case done == 0 && len(refused) == 0:
		e.code = exitNotFound
	case done == 0 && len(missing) == 0:
		e.code = exitFailure
	}
	e.err = errors.New(strings.Join(reasons, "; "))
	return e
}

func unique(ids []string) []string {
	var once []string
	for _, id := range ids {
		if !slices.Contains(once, id) {
			once = append(once, id)
		}
	}
	return once
}
