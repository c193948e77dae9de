package cli

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

type lsCommand struct {
	*app
	filter  filter
	sort    string
	reverse bool
	limit   int
	after   string
	nul     bool
}

// sortOrders are what --sort takes, with the order that each means.
func sortOrders() map[string]func(a, b *entry) int {
	return map[string]func(a, b *entry) int{
		"age":     func(a, b *entry) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"size":    func(a, b *entry) int { return cmp.Compare(b.Size, a.Size) },
		"expires": func(a, b *entry) int { return a.ExpiresAt.Compare(b.ExpiresAt) },
		"key":     compareKeys,
	}
}

func compareKeys(a, b *entry) int { return strings.Compare(a.Key.String(), b.Key.String()) }

func newLsCommand(a *app) *cobra.Command {
	c := &lsCommand{app: a}
	cmd := &cobra.Command{
		Use:     "ls [PREFIX]",
		Aliases: []string{"list"},
		GroupID: groupInspect,
		Short:   "List records",
		Long: `Lists the records whose keys begin with PREFIX, or all, in key order. A record
whose time is over is listed only with --state expired. "interrupted" includes
records that are stored as processing, but whose owner is gone or whose lease is
over. With -o wide the values are read too, for a word on each: the status of a
response, the state of a state machine, whether a token is open.

Sorting by anything but the key reads all matching records first and keeps the
first --limit of them.`,
		Example: `  idemctl ls charge/
  idemctl ls --state processing,interrupted --older-than 10m
  idemctl ls --sort size --limit 10 -o wide
  idemctl ls --kind fsm -o wide
  idemctl ls --state failed --limit 0 -o name | xargs -d '\n' -n 1 idemctl get --`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				c.filter.prefix = args[0]
			}
			return c.run(cmd.Context())
		},
		ValidArgsFunction: a.completeKeys,
	}
	c.filter.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&c.filter.kinds, "kind", nil, "only records of these `KINDS`: "+strings.Join(kindNames(), ", ")+", or your own")
	flags.Var(newDurationFlag(&c.filter.expiresWithin, 0), "expires-within", "only records that expire within this time")
	flags.StringVar(&c.sort, "sort", "key", "`ORDER`: key, age (oldest first), size (largest first) or expires (soonest first)")
	flags.BoolVar(&c.reverse, "reverse", false, "turn the order round")
	flags.Var(newCountFlag("limit", &c.limit, 100), "limit", "list at most `N` records; 0 means all")
	flags.StringVar(&c.after, "after", "", "begin after `KEY`, to go on where a limited list ended")
	flags.BoolVarP(&c.nul, "null", "0", false, "with -o name: end names with a NUL byte, for xargs -0")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"key", "age", "size", "expires"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *lsCommand) validate() (func(a, b *entry) int, error) {
	order, known := sortOrders()[c.sort]
	switch {
	case !known:
		return nil, usage("--sort: unknown order %q: use key, age, size or expires", c.sort)
	case c.nul && c.flags.output != render.FormatName.String():
		return nil, usage("--null goes with -o name only")
	}
	if c.after != "" {
		if _, err := idem.ParseKey(c.after); err != nil {
			return nil, fail(exitUsage, "idemctl help keys", "--after %q: %w", c.after, err)
		}
	}
	if c.reverse {
		forward := order
		order = func(a, b *entry) int { return forward(b, a) }
	}
	return order, c.filter.validate()
}

func (c *lsCommand) run(ctx context.Context) error {
	order, err := c.validate()
	if err != nil {
		return err
	}
	look, err := c.look("ls")
	if err != nil {
		return err
	}
	r, err := c.newReader(ctx)
	if err != nil {
		return err
	}
	r.details = look.format == render.FormatWide
	opts := look.options(c.app)
	opts.NUL = c.nul
	out, err := render.NewRecords(c.out, opts, entryView(look, r.now()))
	if err != nil {
		return usage("%w", err)
	}
	list := c.stream
	if c.sort != "key" || c.reverse {
		list = func(ctx context.Context, r *reader, out *render.Records[entry]) (listed, error) {
			return c.sorted(ctx, r, out, order)
		}
	}
	found, err := list(ctx, r, out)
	if err != nil {
		_ = out.Flush() // the first error is the one to tell
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	c.footer(r, out.Count(), found)
	return found.err(c.app)
}

// listed sums up what a listing has met.
type listed struct {
	last    string // key of the last record listed
	cut     bool   // the limit was reached and there is more
	damaged int
}

func (l listed) err(a *app) error {
	if l.damaged == 0 {
		return nil
	}
	return fail(exitFailure, a.hint("check"), "%s cannot be read", plural(l.damaged, "record"))
}

func (c *lsCommand) query(r *reader) idem.Query {
	q := c.filter.query()
	q.After, q.OmitValues = c.after, !r.details
	return q
}

// stream prints in key order while it reads.
func (c *lsCommand) stream(ctx context.Context, r *reader, out *render.Records[entry]) (listed, error) {
	var found listed
	q := c.query(r)
	for e, err := range r.entries(ctx, q) {
		if err != nil {
			return found, err
		}
		if !c.filter.selects(&e, r.now()) {
			continue
		}
		if c.limit > 0 && out.Count() == c.limit {
			found.cut = true
			return found, nil
		}
		if e.Damage != nil {
			found.damaged++
		}
		if err := out.Write(e); err != nil {
			return found, err
		}
		if e.Key.Validate() == nil { // else --after would not take it
			found.last = e.Key.String()
		}
	}
	return found, nil
}

// sorted keeps the first --limit records of the order while it reads all.
func (c *lsCommand) sorted(ctx context.Context, r *reader, out *render.Records[entry], order func(a, b *entry) int) (listed, error) {
	var found listed
	first := topList{limit: c.limit, order: order}
	q := c.query(r)
	for e, err := range r.entries(ctx, q) {
		if err != nil {
			return found, err
		}
		if !c.filter.selects(&e, r.now()) {
			continue
		}
		if e.Damage != nil {
			found.damaged++
		}
		found.cut = first.add(e) || found.cut
	}
	for _, e := range first.sorted() {
		if err := out.Write(e); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (c *lsCommand) footer(r *reader, count int, found listed) {
	name := render.Escape(filepath.Base(r.info.Path))
	total := render.Count(r.info.Records)
	switch {
	case count == 0:
		c.note("No records match.")
	case found.cut && found.last != "":
		c.note("first %s of %s records in %s; go on with --after %s", render.Count(int64(count)), total, name, render.ShellQuote(found.last))
	case found.cut:
		c.note("first %s of %s records in %s", render.Count(int64(count)), total, name)
	default:
		c.note("%s of %s records in %s", render.Count(int64(count)), total, name)
	}
}
