package fsm

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Colours of the picture.
const (
	ink      = "#1f2933"
	paper    = "#ffffff"
	fill     = "#eef4fb"
	fillEnd  = "#f3f4f6"
	lineBack = "#9a6a1f" // of transitions that do not lead ahead
)

// SVG returns a picture of the machine as an SVG document that needs nothing
// else: the states in columns by their distance from the initial one, final ones
// with a double frame, transitions that lead back dashed and below. It is the same
// for the same definition and scope.
func (m *Machine) SVG() string {
	p := m.draw()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="monospace" font-size="%d">`+"\n",
		p.width, p.height, p.width, p.height, fontSize)
	fmt.Fprintf(&b, "<title>States of %s</title>\n", escaped(m.scope))
	fmt.Fprintf(&b, "<defs>%s%s</defs>\n", arrow("fsm-ahead", ink), arrow("fsm-back", lineBack))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="%s"/>`+"\n", p.width, p.height, paper)
	p.writeBeginning(&b)
	for _, l := range p.links {
		l.write(&b)
	}
	for _, s := range p.boxes {
		s.write(&b)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func arrow(id, colour string) string {
	return fmt.Sprintf(`<marker id="%s" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">`+
		`<path d="M0 0L8 4L0 8z" fill="%s"/></marker>`, id, colour)
}

// writeBeginning draws the mark from which an arrow leads to the initial state.
func (p *picture) writeBeginning(b *strings.Builder) {
	y := p.initial.middle()
	fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="5" fill="%s"/>`+"\n", margin-4, y, ink)
	fmt.Fprintf(b, `<path d="M%d %dH%d" fill="none" stroke="%s" stroke-width="1.5" marker-end="url(#fsm-ahead)"/>`+"\n",
		margin, y, p.initial.x, ink)
}

func (s *box) write(b *strings.Builder) {
	colour := fill
	if s.final {
		colour = fillEnd
	}
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="7" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n",
		s.x, s.y, s.w, boxHeight, colour, ink)
	if s.final {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="5" fill="none" stroke="%s"/>`+"\n",
			s.x+3, s.y+3, s.w-6, boxHeight-6, ink)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="%s">%s</text>`+"\n",
		s.x+s.w/2, s.middle()+fontSize/3, ink, escaped(s.name))
}

func (l *link) write(b *strings.Builder) {
	if l.ahead() {
		bend := (l.to.x - l.from.right()) / 2
		fmt.Fprintf(b, `<path d="M%d %dC%d %d %d %d %d %d" fill="none" stroke="%s" stroke-width="1.5" marker-end="url(#fsm-ahead)"/>`+"\n",
			l.from.right(), l.from.middle(), l.from.right()+bend, l.from.middle(), l.to.x-bend, l.to.middle(), l.to.x, l.to.middle(), ink)
		return
	}
	way := fmt.Sprintf("H%dV%dH%d", l.out, l.to.low(), l.to.right())
	if l.underneath > 0 {
		way = fmt.Sprintf("H%dV%dH%dV%dH%d", l.out, l.underneath, l.in, l.to.low(), l.to.x)
	}
	fmt.Fprintf(b, `<path d="M%d %d%s" fill="none" stroke="%s" stroke-width="1.5" stroke-dasharray="5 3" stroke-linejoin="round" marker-end="url(#fsm-back)"/>`+"\n",
		l.from.right(), l.from.low(), way, lineBack)
}

// escaped is text within an element.
func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
