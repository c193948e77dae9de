package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// report is all that a run has found; with -json it is printed as it is.
type report struct {
	Time    time.Time     `json:"time"`
	System  string        `json:"system"`
	CPUs    int           `json:"cpus"`
	Go      string        `json:"go"`
	Records int           `json:"records"`
	Rounds  int           `json:"rounds"`
	Length  time.Duration `json:"round_ns"`
	// OthersWrite is the rate at which the disk wrote while nothing was measured,
	// before the rounds of each number of callers. BytesPerOp includes as much.
	OthersWrite []float64 `json:"others_bytes_per_second"`
	Results     []result  `json:"results"`
	// Bars are held against 200,000 records; with others they say little.
	Bars    []standing `json:"bars,omitempty"`
	Repeats []repeat   `json:"repeats,omitempty"`
	LeftOut []leftOut  `json:"left_out,omitempty"`
}

type leftOut struct {
	Store string `json:"store"`
	Why   string `json:"why"`
}

func newReport(p *plan) *report {
	return &report{
		Time: time.Now().UTC().Truncate(time.Second), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		Go: runtime.Version(), Records: p.records, Rounds: p.rounds, Length: p.length,
	}
}

func (r *report) leaveOut(store string, why error) {
	if !slices.ContainsFunc(r.LeftOut, func(l leftOut) bool { return l.Store == store }) {
		r.LeftOut = append(r.LeftOut, leftOut{store, why.Error()})
	}
}

// compare fills in the ratios and the bars.
func (r *report) compare() {
	r.Bars = r.standings()
	for i := range r.Results {
		for _, base := range r.of(r.Results[i].Callers) {
			if base.Store == "idem" {
				r.Results[i].Ratio = base.Rate / r.Results[i].Rate
			}
		}
	}
}

// callers returns the numbers of callers in the order in which they were measured.
func (r *report) callers() []int {
	var numbers []int
	for _, res := range r.Results {
		if !slices.Contains(numbers, res.Callers) {
			numbers = append(numbers, res.Callers)
		}
	}
	return numbers
}

// of returns the results for one number of callers.
func (r *report) of(callers int) []result {
	var list []result
	for _, res := range r.Results {
		if res.Callers == callers {
			list = append(list, res)
		}
	}
	return list
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *report) writeText(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d CPUs, %s; %d records in the store, %d rounds of %s, medians of rounds\n",
		r.System, r.CPUs, r.Go, r.Records, r.Rounds, r.Length)
	for _, callers := range r.callers() {
		fmt.Fprintf(w, "\n%s\n\n", inWords(callers))
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "store\tops/s\tp50\tp99\tbytes/op\tidem/store\t")
		for _, res := range r.of(callers) {
			ratio := "-"
			if res.Ratio > 0 {
				ratio = fmt.Sprintf("%.2f", res.Ratio)
			}
			fmt.Fprintf(t, "%s\t%.0f\t%s\t%s\t%.0f\t%s\t\n",
				res.Store, res.Rate, milliseconds(res.P50), milliseconds(res.P99), res.BytesPerOp, ratio)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if err := r.writeBars(w); err != nil {
		return err
	}
	for _, rep := range r.Repeats {
		fmt.Fprintf(w, "\nrepeat from %s: %d ns, %.1f allocations", rep.From, rep.Took.Nanoseconds(), rep.Allocs)
	}
	fmt.Fprintln(w)
	for i, callers := range r.callers() {
		fmt.Fprintf(w, "before the rounds of %s the disk wrote %.0f KiB/s for others; bytes/op include that\n",
			inWords(callers), r.OthersWrite[i]/1024)
	}
	for _, l := range r.LeftOut {
		fmt.Fprintf(w, "left out: %s: %s\n", l.Store, l.Why)
	}
	return nil
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func inWords(callers int) string {
	if callers == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", callers)
}
