package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Sizes of the chart in pixels.
const (
	chartWidth  = 720
	chartMargin = 16
	labelWidth  = 110
	valueWidth  = 70
	barHeight   = 18
	barGap      = 6
	titleHeight = 34
)

const chartStyle = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.name { text-anchor: end }
.bar { fill: #8c959f }
.idem { fill: #0969da }
.limit { fill: none; stroke: #8c959f; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .idem { fill: #4493f8 } }
</style>
`

// writeSVG draws operations per second, a panel for each number of callers, each
// with a scale of its own that begins at zero.
func (r *report) writeSVG(w io.Writer) error {
	height := 2 * chartMargin
	for _, callers := range r.callers() {
		height += titleHeight + len(r.of(callers))*(barHeight+barGap)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n", chartWidth, height)
	fmt.Fprintf(out, "<title>Operations per second on new keys, %d records in the store</title>\n%s", r.Records, chartStyle)
	y := chartMargin
	for _, callers := range r.callers() {
		y = drawPanel(out, y, callers, r.of(callers))
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

func drawPanel(out io.Writer, y, callers int, results []result) int {
	slices.SortFunc(results, func(a, b result) int { return cmp.Compare(b.Rate, a.Rate) })
	fmt.Fprintf(out, "<text class=\"title\" x=\"%d\" y=\"%d\">%s, operations per second</text>\n", chartMargin, y+20, inWords(callers))
	y += titleHeight
	const left = chartMargin + labelWidth + 8
	for _, res := range results {
		width := res.Rate / results[0].Rate * (chartWidth - left - valueWidth - chartMargin)
		class := "bar"
		switch res.Store {
		case "idem":
			class = "idem"
		case "raw-limit":
			class = "limit"
		}
		fmt.Fprintf(out, "<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>", chartMargin+labelWidth, y+14, res.Store)
		fmt.Fprintf(out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", class, left, y, width, barHeight)
		fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\">%.0f</text>\n", left+width+8, y+14, res.Rate)
		y += barHeight + barGap
	}
	return y
}
