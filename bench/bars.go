package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// bar is what idem is meant to reach beside another store in one run with
// 200,000 records in the store.
type bar struct {
	callers int
	store   string
	figure  string // what is compared: see measures
	least   float64
}

// bars is a list to argue with: a release says which of them it misses, and why.
func bars() []bar {
	return []bar{
		{1, "bbolt-update", rate, 2.4}, {1, "sqlite", rate, 1.1}, {1, "pebble", rate, 1.1}, {1, "redis", rate, 1.1},
		{1, "postgres", rate, 1.1}, {1, "raw-limit", rate, 0.8}, {1, "bbolt-update", bytesPerOp, 4},
		{32, "bbolt-update", rate, 15}, {32, "bbolt-batch", rate, 7}, {32, "redis", rate, 1.4}, {32, "pebble", rate, 1.1},
		{128, "bbolt-update", rate, 40}, {128, "bbolt-batch", rate, 7}, {128, "redis", rate, 1.5}, {128, "pebble", rate, 2},
		{128, "redis", p99, 1}, {128, "bbolt-update", bytesPerOp, 4},
	}
}

// Figures, each as how many times better idem is.
const (
	rate       = "ops/s"
	p99        = "p99"
	bytesPerOp = "bytes/op"
)

// standing is a bar beside what was measured.
type standing struct {
	Callers  int     `json:"callers"`
	Store    string  `json:"store"`
	Figure   string  `json:"figure"`
	Least    float64 `json:"least"`
	Measured float64 `json:"measured"`
}

func (s standing) met() bool { return s.Measured >= s.Least }

// standings holds the results against the bars whose stores were measured.
func (r *report) standings() []standing {
	var list []standing
	for _, b := range bars() {
		ours, theirs := r.find("idem", b.callers), r.find(b.store, b.callers)
		if ours == nil || theirs == nil {
			continue
		}
		times := map[string]float64{
			rate:       ours.Rate / theirs.Rate,
			p99:        float64(theirs.P99) / float64(ours.P99),
			bytesPerOp: theirs.BytesPerOp / ours.BytesPerOp,
		}
		list = append(list, standing{b.callers, b.store, b.figure, b.least, times[b.figure]})
	}
	return list
}

func (r *report) find(store string, callers int) *result {
	for i, res := range r.Results {
		if res.Store == store && res.Callers == callers {
			return &r.Results[i]
		}
	}
	return nil
}

func (r *report) writeBars(w io.Writer) error {
	if len(r.Bars) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nhow many times better idem is, and was to be")
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "callers\tthan\tby\tis\twas to be\t\t")
	for _, s := range r.Bars {
		verdict := "met"
		if !s.met() {
			verdict = "missed"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%.2f\t%.2f\t%s\t\n", s.Callers, s.Store, s.Figure, s.Measured, s.Least, verdict)
	}
	return t.Flush()
}
