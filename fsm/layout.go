package fsm

import (
	"slices"
	"unicode/utf8"
)

// Sizes of the picture, in pixels.
const (
	fontSize  = 14
	charWidth = 9 // of a monospaced font, with some room
	boxPad    = 14
	boxHeight = 38
	rowGap    = 26
	gapWidth  = 60 // between two columns, without the lanes in it
	laneWidth = 10
	margin    = 20
)

// box is where a state is drawn.
type box struct {
	name       string
	layer, row int
	x, y, w    int
	final      bool
}

func (b *box) right() int  { return b.x + b.w }
func (b *box) middle() int { return b.y + boxHeight/2 }
func (b *box) low() int    { return b.y + boxHeight*3/4 }

// link is a transition to draw. Since layers are distances it leads at most one
// layer ahead. One that does not lead ahead goes round the boxes: up or down
// between the columns, and below all of them if it leads back.
type link struct {
	from, to   *box
	out, in    int // x of the lanes behind from and before to
	underneath int // y of the lane below, 0 in one to the same layer
}

func (l *link) ahead() bool { return l.to.layer > l.from.layer }

// picture is a drawing of a machine.
type picture struct {
	boxes         []*box
	links         []*link
	initial       *box
	width, height int
}

// draw lays the machine out in columns by the distance from the initial state.
func (m *Machine) draw() *picture {
	p := &picture{}
	byName := make(map[string]*box)
	columns := m.columns()
	for layer, column := range columns {
		for row, name := range column {
			b := &box{name: name, layer: layer, row: row, final: len(m.def.Transitions[name]) == 0}
			byName[name] = b
			p.boxes = append(p.boxes, b)
		}
	}
	p.initial = byName[m.def.Initial]
	for _, from := range p.boxes {
		for _, to := range m.def.Transitions[from.name] {
			p.links = append(p.links, &link{from: from, to: byName[to]})
		}
	}
	p.place(columns)
	return p
}

// columns are the layers, each in an order that keeps most lines from crossing:
// by the mean row of the states that lead there.
func (m *Machine) columns() [][]string {
	columns := m.def.layers()
	for n := 1; n < len(columns); n++ {
		before := columns[n-1]
		weight := make(map[string]float64)
		for _, name := range columns[n] {
			sum, count := 0, 0
			for row, from := range before {
				if slices.Contains(m.def.Transitions[from], name) {
					sum += row
					count++
				}
			}
			weight[name] = float64(sum) / float64(count) // something leads there
		}
		slices.SortStableFunc(columns[n], func(a, b string) int {
			switch {
			case weight[a] < weight[b]:
				return -1
			case weight[a] > weight[b]:
				return 1
			}
			return 0
		})
	}
	return columns
}

// place gives every box and lane its position. Before and behind each column there
// is room for as many lanes as need it.
func (p *picture) place(columns [][]string) {
	before, behind := make([]int, len(columns)), make([]int, len(columns))
	back := 0
	for _, l := range p.links {
		if l.ahead() {
			continue
		}
		l.out = behind[l.from.layer]
		behind[l.from.layer]++
		if l.to.layer < l.from.layer {
			l.in = before[l.to.layer]
			before[l.to.layer]++
			l.underneath = 1 + back
			back++
		}
	}
	bottom := p.placeBoxes(columns, before, behind)
	for _, l := range p.links {
		if l.ahead() {
			continue
		}
		l.out = l.from.x + columnWidth(columns[l.from.layer]) + laneWidth*(l.out+2)
		if l.underneath > 0 {
			l.in = l.to.x - laneWidth*(l.in+2)
			l.underneath = bottom + laneWidth*(l.underneath+1)
		}
	}
	p.height = bottom + margin
	if back > 0 {
		p.height += laneWidth * (back + 1)
	}
}

// placeBoxes returns the lowest y of a box.
func (p *picture) placeBoxes(columns [][]string, before, behind []int) int {
	tallest := 0
	for _, column := range columns {
		tallest = max(tallest, columnHeight(column))
	}
	x := margin
	left := make([]int, len(columns))
	for n, column := range columns {
		if n == 0 {
			x += gapWidth / 2 // for the mark of the beginning
		} else {
			x += gapWidth
		}
		x += laneWidth * before[n]
		left[n] = x
		x += columnWidth(column) + laneWidth*behind[n]
	}
	p.width = x + margin
	if behind[len(columns)-1] > 0 {
		p.width += laneWidth
	}
	for _, b := range p.boxes {
		column := columns[b.layer]
		b.w = columnWidth(column)
		b.x = left[b.layer]
		b.y = margin + (tallest-columnHeight(column))/2 + b.row*(boxHeight+rowGap)
	}
	return margin + tallest
}

func columnHeight(column []string) int { return len(column)*(boxHeight+rowGap) - rowGap }

func columnWidth(column []string) int {
	widest := 0
	for _, name := range column {
		cells := 0
		for _, r := range name {
			cells++
			if r >= utf8.RuneSelf { // it may be a wide one
				cells++
			}
		}
		widest = max(widest, cells)
	}
	return 2*boxPad + widest*charWidth
}
