package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

func newStatsCommand(a *app) *cobra.Command {
	var top int
	cmd := &cobra.Command{
		Use:     "stats",
		GroupID: groupInspect,
		Short:   "Count records and what happened to calls",
		Long: `Counts the records by state and age, shows how long functions held their keys,
what became of calls in the last 14 days, and the keys that stand out: the
largest, the most repeated, and those that came with many different contents,
as when a client sends one key for everything.

It reads the file once and keeps only counts, whatever the size of the file.`,
		Example: "  idemctl stats\n  idemctl stats --top 3 -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.stats(cmd.Context(), top) },
	}
	cmd.Flags().Var(newCountFlag("top", &top, 10), "top", "list `N` keys of each kind; 0 lists none")
	return cmd
}

func (a *app) stats(ctx context.Context, top int) error {
	look, err := a.look("stats")
	if err != nil {
		return err
	}
	s, err := a.collect(ctx, top)
	if err != nil {
		return err
	}
	if look.isJSON() {
		err = look.writeJSON(a.out, newStatsJSON(s, top))
	} else {
		p := page{out: a.out, look: look, app: a}
		p.stats(s, top)
		err = p.err
	}
	if err != nil {
		return err
	}
	return listed{damaged: int(s.damaged)}.err(a)
}

// page prints sections of text. The first error stays and stops the rest.
type page struct {
	out  io.Writer
	look look
	app  *app
	err  error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

// heading begins a section.
func (p *page) heading(text string) { p.line("\n%s", p.look.term.Bold(text)) }

func (p *page) table(t *render.Table) {
	if p.err == nil {
		t.Header, t.Full = true, p.app.flags.full
		p.err = t.Render(p.out, p.look.term)
	}
}

func (p *page) stats(s *statistics, top int) {
	info := s.info
	p.line("%s   %s on disk, %s in use (%s), format %d, %s",
		render.Escape(filepath.Base(info.Path)), render.Bytes(info.FileBytes), render.Bytes(info.UsedBytes),
		render.Percent(info.UsedBytes, info.FileBytes), info.Format, plural(int(s.total), "record"))
	p.states(s)
	p.created(s)
	p.activity(s)
	if top > 0 {
		p.keys("Keys that came with other content", &s.suspects, "contents", func(e *entry) render.Cell {
			return render.Text(fmt.Sprintf("about %d in %s", e.DistinctMismatches, plural(int(e.Mismatches), "mismatch")))
		})
		p.keys("Largest", &s.largest, "size", func(e *entry) render.Cell { return render.BytesCell(int64(e.Size)) })
		p.keys("Most replayed", &s.mostReplay, "replays", func(e *entry) render.Cell { return render.CountCell(int64(e.Replays)) })
	}
}

func (p *page) states(s *statistics) {
	if s.total == 0 {
		return
	}
	p.line("")
	t := render.Table{Columns: []render.Column{
		{Name: "state"}, {Name: "count", Right: true}, {Name: "share", Right: true}, {Name: "oldest"},
	}}
	row := func(name string, c *stateCount) []render.Cell {
		return []render.Cell{
			stateStyle(name).Text(name), render.CountCell(c.count), render.Text(render.Percent(c.count, s.total)),
			p.look.timeCell(c.oldest, s.now()),
		}
	}
	if p.look.term.IsTTY { // a program has the share
		t.Columns = append(t.Columns, render.Column{})
		cells := row
		row = func(name string, c *stateCount) []render.Cell {
			return append(cells(name, c), render.Text(render.Bar(float64(c.count)/float64(s.total), 20)))
		}
	}
	for _, name := range s.presentStates() {
		t.AddRow(row(name, s.states[name])...)
	}
	if s.damaged > 0 {
		t.AddRow(row(stateDamaged, &stateCount{count: s.damaged})...)
	}
	p.table(&t)
	if n := s.count(idem.Interrupted.String()); n > 0 {
		p.line("%s interrupted (%s): %s", render.Count(n), s.whyInterrupted(), p.app.hint("ls --state interrupted"))
	}
}

// whyInterrupted counts the interrupted records by what makes them so.
func (s *statistics) whyInterrupted() string {
	recorded := s.count(idem.Interrupted.String()) - s.ownerGone - s.leaseOver
	var reasons []string
	for _, reason := range []struct {
		name  string
		count int64
	}{{"owner gone", s.ownerGone}, {"lease over", s.leaseOver}, {"recorded as interrupted", recorded}} {
		if reason.count > 0 {
			reasons = append(reasons, reason.name+" "+render.Count(reason.count))
		}
	}
	return strings.Join(reasons, ", ")
}

func (p *page) created(s *statistics) {
	hourly := s.createdPerHour[:]
	p.line("")
	p.line("created per hour, 24h  %s  peak %s", render.Spark(hourly), render.Count(slices.Max(hourly)))
	p.line("replays %s, by %s of %s", render.Count(int64(s.replays)), render.Count(s.replayed), plural(int(s.total), "record"))
	if s.hold.count > 0 {
		p.line("hold time  p50 %s  p95 %s  p99 %s", render.Age(s.hold.percentile(0.5)),
			render.Age(s.hold.percentile(0.95)), render.Age(s.hold.percentile(0.99)))
	}
}

func (p *page) activity(s *statistics) {
	sum := sumHours(s.history)
	if len(sum.events) == 0 {
		return
	}
	p.heading("Calls in the last 14 days")
	t := render.Table{Columns: []render.Column{{Name: "outcome"}, {Name: "count", Right: true}}}
	for _, kind := range idem.EventKinds() {
		if n := sum.events[kind]; n > 0 {
			t.AddRow(render.Text(kind.String()+rejectedText(kind, sum)), render.CountCell(int64(n)))
		}
	}
	p.table(&t)
	p.line("hit rate %s", render.Percent(int64(sum.events[idem.EventReplayed]), int64(sum.answered())))
}

func rejectedText(kind idem.EventKind, sum activity) string {
	if kind != idem.EventRejected || len(sum.rejected) == 0 {
		return ""
	}
	var reasons []string
	for reason, n := range sum.rejected {
		reasons = append(reasons, fmt.Sprintf("%s %s", reason, render.Count(int64(n))))
	}
	slices.Sort(reasons)
	return " (" + strings.Join(reasons, ", ") + ")"
}

// keys lists keys with the figure that they are listed for.
func (p *page) keys(heading string, list *topList, column string, figure func(*entry) render.Cell) {
	entries := list.sorted()
	if len(entries) == 0 {
		return
	}
	p.heading(heading)
	t := render.Table{Columns: []render.Column{{Name: "key", Flex: true}, {Name: column, Right: true}}}
	for _, e := range entries {
		t.AddRow(render.Text(e.Key.String()), figure(&e))
	}
	p.table(&t)
}
