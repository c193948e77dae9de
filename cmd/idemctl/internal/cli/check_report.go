package cli

import (
	"fmt"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// checkJSON is the result of a check in JSON; docs/cli.md describes it.
type checkJSON struct {
	Path       string        `json:"path"`
	OK         bool          `json:"ok"`
	Problems   int           `json:"problems"`
	Areas      []areaJSON    `json:"areas"`
	Leases     int           `json:"leases"`
	Alive      int           `json:"leases_alive"`
	Overdue    int           `json:"leases_overdue"`
	Warnings   []string      `json:"warnings"`
	Findings   []findingJSON `json:"findings"`
	DurationMS int64         `json:"duration_ms"`

	complete bool // the pages were sound, so the rest was looked at
}

type areaJSON struct {
	Area     string `json:"area"`
	Checked  int    `json:"checked"`
	Problems int    `json:"problems"`
}

type findingJSON struct {
	Area   string  `json:"area"`
	Key    *string `json:"key"`
	Detail string  `json:"detail"`
}

func (a *app) newCheckJSON(path string, result checkResult, took time.Duration) checkJSON {
	r := result.Report
	j := checkJSON{
		Path: path, OK: r.Problems == 0, Problems: r.Problems, Leases: r.Leases, Alive: result.Alive, Overdue: r.Overdue,
		Warnings: append([]string{}, result.Info.Warnings...), Findings: []findingJSON{},
		DurationMS: took.Milliseconds(), complete: true,
	}
	if r.Overdue > 0 {
		j.Warnings = append(j.Warnings, fmt.Sprintf("%s overdue: %s", plural(r.Overdue, "lease"), a.hint("ls --state interrupted")))
	}
	problems := make(map[idem.CheckArea]int)
	for _, f := range r.Findings {
		problems[f.Area]++
		j.Findings = append(j.Findings, findingJSON{string(f.Area), optional(f.Key), f.Detail})
	}
	checked := map[idem.CheckArea]int{
		idem.CheckPages: r.Pages, idem.CheckRecords: r.Records, idem.CheckIndex: r.IndexEntries, idem.CheckTotals: 1,
	}
	j.complete = problems[idem.CheckPages] == 0
	for _, area := range idem.CheckAreas() {
		if j.complete || area == idem.CheckPages {
			j.Areas = append(j.Areas, areaJSON{string(area), checked[area], problems[area]})
		}
	}
	return j
}

// listedFindings bounds what is printed for people.
const listedFindings = 20

func (p *page) check(c *checkJSON) {
	for _, area := range c.Areas {
		p.line("%-14s %s   %s", area.Area, area.counted(), p.status(area.Problems))
	}
	if !c.complete {
		p.line("The rest cannot be checked while the pages are damaged.")
	}
	if c.Leases > 0 {
		p.line("%-14s %s claimed, %s alive, %s overdue", "leases", render.Count(int64(c.Leases)),
			render.Count(int64(c.Alive)), render.Count(int64(c.Overdue)))
	}
	for _, warning := range c.Warnings {
		p.line("%s %s", p.look.term.Yellow("warning:"), render.Escape(warning))
	}
	for i, f := range c.Findings {
		if i == listedFindings {
			p.line("…and %s more (-o json for all)", render.Count(int64(c.Problems-listedFindings)))
			break
		}
		p.line("%s", f.text())
	}
	p.line("%s (%s)", c.verdict(), render.Age(time.Duration(c.DurationMS)*time.Millisecond))
}

func (a areaJSON) counted() string {
	switch idem.CheckArea(a.Area) {
	case idem.CheckPages:
		return plural(a.Checked, "page")
	case idem.CheckRecords:
		return plural(a.Checked, "record") + " decoded, checksums compared"
	case idem.CheckIndex:
		if a.Checked == 1 {
			return "1 entry"
		}
		return render.Count(int64(a.Checked)) + " entries"
	}
	return "compared with the books"
}

func (p *page) status(problems int) string {
	if problems == 0 {
		return p.look.term.Green("ok")
	}
	return p.look.term.Red(plural(problems, "problem"))
}

func (f findingJSON) text() string {
	if f.Key == nil {
		return f.Area + ": " + printable(f.Detail)
	}
	return f.Area + ": " + render.Escape(*f.Key) + ": " + printable(f.Detail)
}

func (c *checkJSON) verdict() string {
	text := "OK"
	if c.Problems > 0 {
		text = plural(c.Problems, "problem") + " found"
	}
	if len(c.Warnings) > 0 {
		text += ", " + plural(len(c.Warnings), "warning")
	}
	return text
}
