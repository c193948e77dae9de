package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

type purgeCommand struct {
	*app
	filter            filter
	keys              []idem.Key
	expired           bool
	dryRun            bool
	yes               bool
	includeProcessing bool
	confirm           string
	damaged           bool
}

func newPurgeCommand(a *app) *cobra.Command {
	c := &purgeCommand{app: a}
	cmd := &cobra.Command{
		Use:     "purge [KEY…]",
		GroupID: groupMaintain,
		Short:   "Delete records",
		Long: `Deletes the records of the keys, or those that fulfil all of the conditions
given. A deleted key runs again if it is retried, so it says first what it would
delete and asks; --yes answers for scripts.

Records that are written after it has shown that are left alone, and counted if
they were changed (exit code 5). Attempts that are running are left alone too,
unless --include-processing and the name of the file say otherwise.

The file does not shrink: the space is used for new records.`,
		Example: `  idemctl purge --expired
  idemctl purge --state failed --older-than 30d --dry-run
  idemctl purge charge/order-1042 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },

		ValidArgsFunction: a.completeKeys,
	}
	c.filter.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&c.expired, "expired", false, "all records whose time is over; excludes other conditions")
	flags.StringVar(&c.filter.prefix, "prefix", "", "only keys that begin with `PREFIX`")
	flags.BoolVarP(&c.dryRun, "dry-run", "n", false, "say what would be deleted and delete nothing")
	flags.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&c.includeProcessing, "include-processing", false, "also records of attempts that are running: they lose their key")
	flags.StringVar(&c.confirm, "confirm", "", "with --include-processing: the file's `NAME`, instead of being asked for it")
	flags.BoolVar(&c.damaged, "damaged", false, "records of the keys that cannot be read, and only those")
	return cmd
}

func (c *purgeCommand) validate(args []string) error {
	if slices.Equal(c.filter.states, []string{stateExpired}) && c.filter.prefix+c.filter.match == "" && c.filter.olderThan == 0 {
		c.expired, c.filter.states = true, nil
	}
	switch {
	case len(args) > 0 && (c.expired || !c.filter.empty()):
		return usage("give keys or conditions, not both")
	case c.expired && !c.filter.empty(), slices.Contains(c.filter.states, stateExpired):
		return usage("expired records are deleted all together: --expired excludes other conditions")
	case len(args) == 0 && !c.expired && c.filter.empty():
		return fail(exitUsage, c.hint("purge --expired"), "say what to delete: keys, or at least one condition")
	case c.damaged && (len(args) == 0 || c.includeProcessing):
		return usage("--damaged takes keys, which idemctl ls shows as damaged, and no conditions")
	case c.confirm != "" && !c.includeProcessing:
		return usage("--confirm belongs to --include-processing")
	}
	for _, text := range args {
		key, err := idem.ParseKey(text)
		if err != nil {
			return fail(exitUsage, "idemctl help keys", "%q: %w", text, err)
		}
		if !slices.Contains(c.keys, key) {
			c.keys = append(c.keys, key)
		}
	}
	return errors.Join(c.filter.validate(), c.validateConsent())
}

// validateConsent refuses before anything is read if nobody could agree later.
func (c *purgeCommand) validateConsent() error {
	switch {
	case c.dryRun || c.mayAsk():
		return nil
	case c.includeProcessing && c.confirm != "":
		return nil
	case c.includeProcessing:
		return fail(exitUsage, "--confirm NAME, with the name of the file", "--include-processing takes keys away from running attempts and nobody can be asked")
	case !c.yes:
		return fail(exitUsage, "--yes, or --dry-run to see what it would delete", "purge deletes records and nobody can be asked")
	}
	return nil
}

func (c *purgeCommand) run(ctx context.Context, args []string) error {
	if err := c.validate(args); err != nil {
		return err
	}
	look, err := c.look("purge")
	if err != nil {
		return err
	}
	if c.damaged {
		return c.discard(ctx, look)
	}
	plan, err := c.preview(ctx)
	if err != nil {
		return err
	}
	if !c.dryRun && plan.Matched > 0 {
		if err := c.consent(ctx, plan); err != nil {
			return err
		}
		err = plan.stopped(ctx, c.delete(ctx, plan))
	}
	switch {
	case look.isJSON():
		err = errors.Join(err, look.writeJSON(c.out, plan))
	case err == nil:
		c.summary(plan)
	}
	if err != nil {
		return err
	}
	return plan.err()
}

// preview counts what would be deleted.
func (c *purgeCommand) preview(ctx context.Context) (*purgePlan, error) {
	r, err := c.newReader(ctx)
	if err != nil {
		return nil, err
	}
	plan := &purgePlan{
		name: filepath.Base(r.info.Path), byKey: len(c.keys) > 0, now: r.now(), version: r.info.Version, DryRun: c.dryRun,
		Total: r.info.Records, Missing: []string{},
	}
	if len(c.keys) > 0 {
		return plan, r.with(ctx, func(s *idem.BoltStore) error { return c.previewKeys(ctx, s, r.info, plan) })
	}
	q := c.filter.query()
	q.Expired = c.expired
	for e, err := range r.entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		if c.expired && e.State != stateExpired || !c.filter.selects(&e, r.now()) || e.Version > plan.version {
			continue
		}
		c.count(plan, &e)
	}
	return plan, nil
}

func (c *purgeCommand) previewKeys(ctx context.Context, s *idem.BoltStore, info idem.BoltInfo, plan *purgePlan) error {
	judge := newJudge(s, info)
	for _, key := range c.keys {
		rec, err := s.Get(ctx, key)
		if errors.Is(err, idem.ErrNotFound) {
			plan.Missing = append(plan.Missing, key.String())
			continue
		}
		if err != nil {
			return err
		}
		e := judge.entry(ctx, rec, nil)
		c.count(plan, &e)
	}
	return nil
}

func (c *purgeCommand) count(plan *purgePlan, e *entry) {
	switch {
	case e.Damage != nil:
		plan.Damaged++
	case !c.deletes(e):
		plan.InUse++
	default:
		plan.Matched++
		plan.Bytes += int64(e.Size)
		if e.State == idem.Interrupted.String() {
			plan.Interrupted++
		}
	}
}

// deletes protects records of attempts that are running.
func (c *purgeCommand) deletes(e *entry) bool {
	return e.State != idem.Processing.String() || c.includeProcessing
}

// consent gets the agreement of a person, or of the flags.
func (c *purgeCommand) consent(ctx context.Context, plan *purgePlan) error {
	if c.includeProcessing {
		return c.consentByName(ctx, plan)
	}
	if c.yes {
		return nil
	}
	c.describe(plan)
	agreed, err := render.Confirm(ctx, c.in, c.err, "A deleted key runs again if it is retried. Delete?")
	return agreement(ctx, agreed, err, "nothing was deleted")
}

func (c *purgeCommand) consentByName(ctx context.Context, plan *purgePlan) error {
	if c.confirm != "" {
		if c.confirm != plan.name {
			return usage("--confirm is %q, but the file is %q: nothing was deleted", c.confirm, plan.name)
		}
		return nil
	}
	c.describe(plan)
	agreed, err := render.ConfirmPhrase(ctx, c.in, c.err, fmt.Sprintf(
		"Attempts that are running lose their keys and may run twice. Type the file's name, %s, to delete:",
		render.Escape(plan.name)), plan.name)
	return agreement(ctx, agreed, err, "nothing was deleted")
}

// agreement is what an answer means, or its absence. nothing says what has not been
// done.
func agreement(ctx context.Context, agreed bool, err error, nothing string) error {
	if by := interrupted(ctx); by != nil && err != nil {
		return fail(by.code(), "", "%w: %s", by, nothing)
	}
	if err == nil && !agreed {
		err = fail(exitFailure, "", "%s", nothing)
	}
	return err
}

func (c *purgeCommand) describe(plan *purgePlan) {
	fmt.Fprintf(c.err, "%s\n", plan.describe())
}

// summary says what has become of the plan.
func (c *purgeCommand) summary(plan *purgePlan) {
	switch {
	case plan.Matched == 0 && len(c.keys) == 0:
		c.note("No records match.")
	case c.dryRun:
		c.note("%s\nA deleted key runs again if it is retried.", plan.describe())
	case plan.Matched > 0:
		c.note("Deleted %s. The file does not shrink: its space is used again.", plural(plan.Deleted, "record"))
		if left := plan.Matched - plan.Deleted - plan.Changed; left > 0 {
			c.note("%s gone before, or ran out while the service was down and left to it.", wereAre(int64(left), "record"))
		}
	}
	if plan.InUse > 0 && !plan.byKey {
		c.note("%s in progress and left alone; see --include-processing.", wereAre(int64(plan.InUse), "record"))
	}
	if plan.Damaged > 0 {
		c.note("%s damaged and left alone: %s", wereAre(int64(plan.Damaged), "record"), c.hint("check"))
	}
}
