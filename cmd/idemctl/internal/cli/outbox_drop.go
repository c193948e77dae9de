package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/outbox"
)

type outboxDropCommand struct {
	outboxCommand
	dryRun bool
	yes    bool
}

func newOutboxDropCommand(a *app) *cobra.Command {
	c := &outboxDropCommand{outboxCommand: outboxCommand{app: a}}
	cmd := &cobra.Command{
		Use:   "drop ID…",
		Short: "Remove parked events for good",
		Long: `Removes parked events. Nobody will publish them, so it says first what it would drop
and asks; --yes answers for scripts.

Exit code 3 means that no parked event has one of the ids, 5 that this is so for
some; the others are dropped.`,
		Example: `  idemctl outbox drop 0199f0a2-7c1e-7b3a-9d52-2f6a1c0e4b11
  idemctl outbox drop undecodable-17 --yes`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeParked,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.drop(cmd.Context(), unique(args)) },
	}
	c.addFlags(cmd)
	cmd.Flags().BoolVarP(&c.dryRun, "dry-run", "n", false, "say what would be dropped and drop nothing")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	return cmd
}

// droppedJSON is what a drop would do, and then what it has done.
type droppedJSON struct {
	Bucket  string   `json:"bucket"`
	DryRun  bool     `json:"dry_run"`
	Matched []string `json:"matched"`
	Dropped []string `json:"dropped"`
	Missing []string `json:"missing"`
}

func (c *outboxDropCommand) drop(ctx context.Context, ids []string) error {
	l, err := c.look("outbox drop")
	if err != nil {
		return err
	}
	if !c.dryRun && !c.yes && !c.mayAsk() {
		return fail(exitUsage, "--yes, or --dry-run to see what it would drop", "drop removes events for good and nobody can be asked")
	}
	plan, err := c.preview(ctx, ids)
	if err != nil {
		return err
	}
	if !c.dryRun && len(plan.Matched) > 0 {
		if err := c.consent(ctx, plan); err != nil {
			return err
		}
		err = c.carryOut(ctx, plan)
	}
	switch {
	case l.isJSON():
		err = errors.Join(err, l.writeJSON(c.out, plan))
	case c.dryRun && len(plan.Matched) > 0:
		c.note("%s", c.describe(plan))
	case len(plan.Dropped) > 0:
		c.note("Dropped %s.", plural(len(plan.Dropped), "event"))
	}
	if err != nil {
		return err
	}
	done := len(plan.Dropped)
	if c.dryRun {
		done = len(plan.Matched)
	}
	return parkedError(done, plan.Missing, nil)
}

// preview finds out which of the ids are parked. If there are parked events that
// cannot be read, any id may be that of one: dropping it will tell.
func (c *outboxDropCommand) preview(ctx context.Context, ids []string) (*droppedJSON, error) {
	plan := &droppedJSON{Bucket: c.bucket, DryRun: c.dryRun, Matched: []string{}, Dropped: []string{}, Missing: []string{}}
	parked := map[string]bool{}
	err := c.read(ctx, func(_ *idem.BoltStore, o *outbox.Outbox) error {
		for p, err := range o.Parked(ctx) {
			if err != nil && !notAnEvent(err) {
				return err
			}
			parked[p.Event.ID] = true // one that cannot be read has the id "" here
		}
		return nil
	})
	for _, id := range ids {
		if id != "" && (parked[id] || parked[""]) {
			plan.Matched = append(plan.Matched, id)
		} else {
			plan.Missing = append(plan.Missing, id)
		}
	}
	return plan, err
}

func (c *outboxDropCommand) describe(plan *droppedJSON) string {
	return fmt.Sprintf("%s in %s would be dropped.", plural(len(plan.Matched), "parked event"), render.Escape(c.bucket))
}

func (c *outboxDropCommand) consent(ctx context.Context, plan *droppedJSON) error {
	if c.yes {
		return nil
	}
	fmt.Fprintf(c.err, "%s\n", c.describe(plan))
	agreed, err := render.Confirm(ctx, c.in, c.err, "A dropped event is never published. Drop?")
	return agreement(ctx, agreed, err, "nothing was dropped")
}

func (c *outboxDropCommand) carryOut(ctx context.Context, plan *droppedJSON) error {
	return c.write(ctx, plan.Matched, func(o *outbox.Outbox, id string) error {
		err := o.Drop(ctx, id)
		switch {
		case err == nil:
			plan.Dropped = append(plan.Dropped, id)
		case errors.Is(err, outbox.ErrNotParked):
			plan.Missing = append(plan.Missing, id)
		default:
			return err
		}
		return nil
	})
}
