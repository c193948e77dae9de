package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

func newReportCommand(a *app) *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:     "report",
		GroupID: groupInspect,
		Short:   "Report on a store: counts, trends, trouble, what to do next",
		Long: `Reports what stats shows, how hit rate, conflicts and failures went in the last
24 hours and 14 days, which attempts were interrupted, the health of the file,
and what to do next.`,
		Example: "  idemctl report\n  idemctl report --format json > report.json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.reportStore(cmd.Context(), format) },
	}
	cmd.Flags().StringVar(&format, "format", "", "text or json (default by -o, else text)")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// reportTop bounds the lists of a report.
const reportTop = 10

func (a *app) reportStore(ctx context.Context, format string) error {
	look, err := a.look("report")
	if err != nil {
		return err
	}
	switch format {
	case "":
	case "text":
		look.format = render.FormatTable
	case "json":
		look.format = render.FormatJSON
	default:
		return usage("--format: unknown format %q: use text or json", format)
	}
	s, err := a.collect(ctx, reportTop)
	if err != nil {
		return err
	}
	if look.isJSON() {
		return look.writeJSON(a.out, a.newReportJSON(s))
	}
	p := page{out: a.out, look: look, app: a}
	p.report(s)
	return p.err
}

func (p *page) report(s *statistics) {
	p.line("Report of %s", s.now().UTC().Format(time.RFC3339))
	p.stats(s, 5)
	p.heading("Last 24 hours, per hour")
	p.trend(cutHistory(s.history, s.now(), 1, 24))
	p.heading("Last 14 days, per day")
	p.trend(cutHistory(s.history, s.now(), 24, 14))
	p.unsettled(s)
	p.health(s.info)
	p.heading("What to do next")
	for _, advice := range p.app.advise(s) {
		p.line("- %s", advice)
	}
}

// trend draws one line per figure.
func (p *page) trend(parts []activity) {
	draw := func(name string, figure func(activity) float64, total string) {
		values := make([]float64, len(parts))
		for i, part := range parts {
			values[i] = figure(part)
		}
		p.line("%-10s  %s  %s", name, render.Spark(values), total)
	}
	sum := func(figure func(activity) uint64) (n int64) {
		for _, part := range parts {
			n += int64(figure(part))
		}
		return n
	}
	replayed := func(a activity) uint64 { return a.events[idem.EventReplayed] }
	draw("ran", func(a activity) float64 { return float64(a.ran()) }, render.Count(sum(activity.ran)))
	draw("hit rate", activity.hitRate, render.Percent(sum(replayed), sum(activity.answered)))
	draw("conflicts", func(a activity) float64 { return float64(a.conflicts()) }, render.Count(sum(activity.conflicts)))
	draw("failures", func(a activity) float64 { return float64(a.failures()) }, render.Count(sum(activity.failures)))
}

// unsettled lists attempts whose outcome nobody knows, oldest first.
func (p *page) unsettled(s *statistics) {
	entries := s.unsettled.sorted()
	if len(entries) == 0 {
		return
	}
	p.heading("Interrupted, oldest first")
	t := render.Table{Columns: []render.Column{{Name: "key", Flex: true}, {Name: "began"}, {Name: "why"}}}
	for _, e := range entries {
		t.AddRow(render.Text(e.Key.String()), p.look.timeCell(e.StartedAt, s.now()), render.Text(whyInterrupted(&e, s.now())))
	}
	p.table(&t)
	if more := s.count(idem.Interrupted.String()) - int64(len(entries)); more > 0 {
		p.line("…and %s more", render.Count(more))
	}
}

func whyInterrupted(e *entry, now time.Time) string {
	switch {
	case e.Record.State == idem.Interrupted && e.Error != "":
		return e.Error
	case e.Record.State == idem.Interrupted:
		return "the attempt said so"
	case e.OwnerAlive != nil && !*e.OwnerAlive:
		return "its owner is gone"
	}
	return "its lease is over since " + render.Age(e.overdue(now))
}

func (p *page) health(info idem.BoltInfo) {
	p.heading("File")
	if p.err == nil {
		file := newFileJSON(info)
		p.err = file.block().Render(p.out, p.look.term)
	}
}

// advise says what a person should do, most urgent first.
func (a *app) advise(s *statistics) []string {
	var advice []string
	add := func(format string, args ...any) { advice = append(advice, fmt.Sprintf(format, args...)) }
	if s.damaged > 0 {
		add("%s cannot be read: %s", plural(int(s.damaged), "record"), a.hint("check"))
	}
	if n := s.count(idem.Interrupted.String()); n > 0 {
		add("%s interrupted, so nobody knows whether the work was done. Find out and settle each: "+
			"%s, then %s", wereAre(n, "attempt"), a.hint("ls --state interrupted"), a.hint("resolve KEY"))
	}
	sum := sumHours(s.history)
	if n := sum.events[idem.EventStoreError]; n > 0 {
		add("The store failed %s in 14 days: see the service's log", plural(int(n), "time"))
	}
	for _, e := range s.suspects.sorted() {
		if e.DistinctMismatches >= manyContents {
			add("%s came with about %d different contents: its client seems to send one key for everything",
				render.ShellQuote(e.Key.String()), e.DistinctMismatches)
		}
	}
	if n := sum.events[idem.EventRejected]; n > 0 {
		add("%s refused in 14 days%s: see idemctl help keys", wereAre(int64(n), "key"), rejectedText(idem.EventRejected, sum))
	}
	if n := s.count(stateExpired); n*5 > s.total {
		add("%s expired and still there: %s", wereAre(n, "record"), a.hint("purge --expired"))
	}
	for _, warning := range s.info.Warnings {
		add("%s", render.Escape(warning))
	}
	if len(advice) == 0 {
		add("Nothing needs attention.")
	}
	return advice
}

// manyContents is from how many different contents on a key is suspicious.
const manyContents = 3

// wereAre is "1 attempt was" or "2 attempts were".
func wereAre(n int64, noun string) string {
	if n == 1 {
		return plural(1, noun) + " was"
	}
	return plural(int(n), noun) + " were"
}

// reportJSON is a report in JSON; docs/cli.md describes it.
type reportJSON struct {
	At          *string         `json:"at"`
	Stats       statsJSON       `json:"stats"`
	Hours       []trendJSON     `json:"hours"`
	Days        []trendJSON     `json:"days"`
	Interrupted []unsettledJSON `json:"interrupted"`
	Advice      []string        `json:"advice"`
}

type trendJSON struct {
	From *string `json:"from"`
	activityJSON
}

type unsettledJSON struct {
	Key     string  `json:"key"`
	Started *string `json:"started_at"`
	Why     string  `json:"why"`
}

func (a *app) newReportJSON(s *statistics) reportJSON {
	j := reportJSON{
		At: jsonTime(s.now()), Stats: newStatsJSON(s, reportTop),
		Hours: trendsJSON(s, 1, 24), Days: trendsJSON(s, 24, 14),
		Interrupted: []unsettledJSON{}, Advice: a.advise(s),
	}
	for _, e := range s.unsettled.sorted() {
		j.Interrupted = append(j.Interrupted, unsettledJSON{e.Key.String(), jsonTime(e.StartedAt), whyInterrupted(&e, s.now())})
	}
	return j
}

func trendsJSON(s *statistics, hours, count int) []trendJSON {
	trends := make([]trendJSON, count)
	this := s.now().UTC().Truncate(time.Hour)
	for i, part := range cutHistory(s.history, s.now(), hours, count) {
		first := this.Add(-time.Duration((count-i)*hours-1) * time.Hour)
		trends[i] = trendJSON{jsonTime(first), newActivityJSON(part)}
	}
	return trends
}
