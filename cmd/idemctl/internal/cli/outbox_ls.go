package cli

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/outbox"
)

type outboxLsCommand struct {
	outboxCommand
	parked  bool
	payload bool
	limit   int
	after   uint64
}

const (
	// What is read of an outbox in one opening of the file is bounded like a page
	// of records, and by the payloads that are kept.
	outboxRead     = 64
	outboxPage     = 4096
	outboxKeepSize = 32 << 20
)

func newOutboxLsCommand(a *app) *cobra.Command {
	c := &outboxLsCommand{outboxCommand: outboxCommand{app: a}}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List events",
		Long: `Lists the events that wait, in the order in which they were committed, or with
--parked those that are parked, in the order of their ids. Of payloads only the size
is shown, of headers only the names are in JSON; -o json --payload has both.

-o name prints ids, which is what retry and drop take. Events that cannot be read are
listed with what is wrong with them, and the exit code is then 1.`,
		Example: `  idemctl outbox ls
  idemctl outbox ls --parked -o wide
  idemctl outbox ls --after 5120 --limit 1000 -o jsonl --payload`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&c.parked, "parked", false, "the events that are parked")
	flags.Var(newCountFlag("limit", &c.limit, 100), "limit", "list at most `N` events; 0 means all")
	flags.Uint64Var(&c.after, "after", 0, "begin after the event of this `NUMBER`, to go on where a limited list ended")
	flags.BoolVar(&c.payload, "payload", false, "with -o json or jsonl: payloads in base64, and the values of headers")
	return cmd
}

// outboxEntry is an event as it is listed.
type outboxEntry struct {
	number    uint64
	event     outbox.Event
	attempts  int
	lastError string
	parkedAt  time.Time
	payload   int    // its size
	problem   string // why it cannot be read
}

func (c *outboxLsCommand) run(ctx context.Context) error {
	l, err := c.look("outbox ls")
	switch {
	case err != nil:
		return err
	case c.payload && !l.isJSON():
		return usage("--payload goes with -o json or -o jsonl only")
	case c.parked && c.after > 0:
		return usage("--after goes with events that wait: parked ones are in the order of their ids")
	}
	entries, now, err := c.open(ctx)
	if err != nil {
		return err
	}
	out, err := render.NewRecords(c.out, l.options(c.app), c.view(l, now))
	if err != nil {
		return usage("%w", err)
	}
	found, err := c.print(ctx, entries, out, l)
	if err != nil {
		_ = out.Flush() // the first error is the one to tell
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	c.footer(out.Count(), found)
	if found.damaged > 0 {
		return fail(exitFailure, "", "%s cannot be read", plural(found.damaged, "event"))
	}
	return nil
}

// open reads the first events, so that what is wrong with the file is said before
// anything is printed.
func (c *outboxLsCommand) open(ctx context.Context) (entries iter.Seq2[outboxEntry, error], now time.Time, err error) {
	entries = c.waiting(ctx)
	if c.parked {
		entries = c.parkedEntries(ctx)
	}
	err = c.read(ctx, func(s *idem.BoltStore, _ *outbox.Outbox) error {
		now = s.Now()
		return nil
	})
	return entries, now, err
}

func (c *outboxLsCommand) print(ctx context.Context, entries iter.Seq2[outboxEntry, error], out *render.Records[outboxEntry], l look) (listed, error) {
	var found listed
	for e, err := range entries {
		if err != nil {
			return found, err
		}
		if c.limit > 0 && out.Count() == c.limit {
			found.cut = true
			break
		}
		if found.last = strconv.FormatUint(e.number, 10); e.problem != "" {
			found.damaged++
		}
		if l.format == render.FormatName && e.event.ID == "" {
			continue // a name that is empty would be an argument to what reads the list
		}
		if err := out.Write(e); err != nil {
			return found, err
		}
	}
	return found, ctx.Err()
}

func (c *outboxLsCommand) footer(count int, found listed) {
	what := "waiting"
	if c.parked {
		what = "parked"
	}
	switch {
	case count == 0 && found.damaged == 0:
		c.note("No events are %s in %s.", what, render.Escape(c.bucket))
	case found.cut && c.parked:
		c.note("first %s parked in %s; --limit 0 lists all", plural(count, "event"), render.Escape(c.bucket))
	case found.cut:
		c.note("first %s waiting in %s; go on with --after %s", plural(count, "event"), render.Escape(c.bucket), found.last)
	}
}

// waiting yields the events that wait. It holds the file only while it reads a page
// of them, never while the caller prints.
func (c *outboxLsCommand) waiting(ctx context.Context) iter.Seq2[outboxEntry, error] {
	return func(yield func(outboxEntry, error) bool) {
		for after, more := c.after, true; more; {
			var page []outboxEntry
			err := c.read(ctx, func(_ *idem.BoltStore, o *outbox.Outbox) (err error) {
				page, more, err = c.page(ctx, o, after)
				return err
			})
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.number
			}
			if err == nil && more && !sleep(ctx, yieldTime) {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(outboxEntry{}, err)
				return
			}
		}
	}
}

// page reads events until one of the bounds is reached; more says that it was.
func (c *outboxLsCommand) page(ctx context.Context, o *outbox.Outbox, after uint64) (page []outboxEntry, more bool, err error) {
	bytes, began := 0, time.Now()
	for {
		few := outboxRead
		if c.limit > 0 {
			few = min(few, c.limit+1) // one more tells that there is more
		}
		entries, err := o.List(ctx, after, few)
		if err != nil {
			return page, false, err
		}
		for i := range entries {
			e := outboxEntry{
				number: entries[i].Number, event: entries[i].Event, attempts: entries[i].Attempts, lastError: entries[i].LastError,
				problem: problemText(entries[i].Err),
			}
			bytes += c.strip(&e)
			page, after = append(page, e), e.number
		}
		switch {
		case len(entries) < few:
			return page, false, nil
		case c.limit > 0 && len(page) > c.limit, len(page) >= outboxPage, bytes >= outboxKeepSize, time.Since(began) > pageTime:
			return page, true, nil
		}
	}
}

// strip notes the size of the payload and returns how many bytes of it are kept.
func (c *outboxLsCommand) strip(e *outboxEntry) int {
	if e.payload = len(e.event.Payload); c.payload {
		return e.payload
	}
	e.event.Payload = nil
	return 0
}

func problemText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// parkedEntries yields the parked events. They are few, so they are read in one
// opening of the file.
func (c *outboxLsCommand) parkedEntries(ctx context.Context) iter.Seq2[outboxEntry, error] {
	return func(yield func(outboxEntry, error) bool) {
		var found []outboxEntry
		err := c.read(ctx, func(_ *idem.BoltStore, o *outbox.Outbox) error {
			for p, err := range o.Parked(ctx) {
				if err != nil && !notAnEvent(err) {
					return err
				}
				e := outboxEntry{
					number: p.Number, event: p.Event, attempts: p.Attempts, lastError: p.Error, parkedAt: p.ParkedAt, problem: problemText(err),
				}
				c.strip(&e)
				if found = append(found, e); c.limit > 0 && len(found) > c.limit {
					return nil
				}
			}
			return nil
		})
		for _, e := range found {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(outboxEntry{}, err)
		}
	}
}
