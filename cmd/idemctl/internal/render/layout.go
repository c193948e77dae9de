package render

import "sort"

const (
	gutter       = 2 // blanks between columns
	minFlexWidth = 8 // below this a cut text says nothing
)

// layout decides the width of every column: its widest cell, less what the
// flexible columns give up to fit into limit.
func (t *Table) layout(heading []Cell, limit int) []int {
	widths := make([]int, len(t.Columns))
	for i, cell := range heading {
		widths[i] = Width(cell.display())
	}
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Width(cell.display()))
		}
	}
	if limit > 0 && !t.Full {
		t.shrink(widths, limit)
	}
	return widths
}

// shrink caps the flexible columns at one common width, the largest that fits,
// so the widest give first and narrow ones stay whole.
func (t *Table) shrink(widths []int, limit int) {
	room := limit - gutter*(len(widths)-1)
	widest := 0
	for i, width := range widths {
		if t.Columns[i].Flex {
			widest = max(widest, width)
		}
	}
	total := func(ceiling int) int {
		sum := 0
		for i, width := range widths {
			sum += t.capped(i, width, ceiling)
		}
		return sum
	}
	ceiling := sort.Search(widest, func(c int) bool { return total(c+1) > room })
	for i, width := range widths {
		widths[i] = t.capped(i, width, ceiling)
	}
}

func (t *Table) capped(column, width, ceiling int) int {
	if !t.Columns[column].Flex {
		return width
	}
	return min(width, max(ceiling, minFlexWidth))
}
