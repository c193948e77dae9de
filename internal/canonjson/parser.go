package canonjson

import (
	"fmt"
	"slices"
)

// parser validates the input and writes the canonical form in one pass.
type parser struct {
	in    []byte
	pos   int
	depth int
	out   []byte

	// members is a stack: those of the innermost open object are on top.
	members []member

	// unescaped holds the strings that had escapes. It only grows, so that the
	// names in members stay valid.
	unescaped []byte

	scratch []byte // reorder
	digits  []byte // number
}

// member is a member of an open object, as offsets because out still moves.
type member struct {
	name  []byte // unescaped; part of in or of parser.unescaped
	at    int    // of the name in in
	start int    // of the name in out
	value int    // of the value in out
	end   int    // of the value's end in out
}

func newParser(data []byte) *parser {
	return &parser{in: data, out: make([]byte, 0, len(data)), members: make([]member, 0, 8)}
}

func (p *parser) fail(err error) error {
	return p.failAt(p.pos, err)
}

func (p *parser) failAt(offset int, err error) error {
	return fmt.Errorf("canonjson: byte %d: %w", offset, err)
}

// peek returns 0 at the end of the input. A NUL byte in the input reads the
// same, which is harmless: neither may start or follow a token.
func (p *parser) peek() byte {
	if p.pos == len(p.in) {
		return 0
	}
	return p.in[p.pos]
}

func (p *parser) space() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) end() error {
	p.space()
	if p.pos != len(p.in) {
		return p.fail(ErrSyntax)
	}
	return nil
}

func (p *parser) value() error {
	p.space()
	switch p.peek() {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		return p.text()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.number()
	case 't':
		return p.literal("true")
	case 'f':
		return p.literal("false")
	case 'n':
		return p.literal("null")
	}
	return p.fail(ErrSyntax)
}

func (p *parser) literal(word string) error {
	if len(p.in)-p.pos < len(word) || string(p.in[p.pos:p.pos+len(word)]) != word {
		return p.fail(ErrSyntax)
	}
	p.pos += len(word)
	p.out = append(p.out, word...)
	return nil
}

func (p *parser) array() error {
	if err := p.open('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := p.next(']', first)
		if err != nil || !more {
			return err
		}
		if err := p.value(); err != nil {
			return err
		}
	}
}

func (p *parser) open(bracket byte) error {
	if p.depth == MaxDepth {
		return p.fail(ErrTooDeep)
	}
	p.depth++
	p.pos++
	p.out = append(p.out, bracket)
	return nil
}

// next reads what stands between the items of an array or object and reports
// whether another item must follow.
func (p *parser) next(bracket byte, first bool) (more bool, err error) {
	p.space()
	switch c := p.peek(); {
	case c == bracket:
		p.depth--
	case first:
		return true, nil
	case c == ',':
		more = true
	default:
		return false, p.fail(ErrSyntax)
	}
	p.out = append(p.out, p.in[p.pos])
	p.pos++
	return more, nil
}

func (p *parser) object() error {
	body, base := len(p.out)+1, len(p.members)
	if err := p.collect(); err != nil {
		return err
	}
	p.reorder(body, p.members[base:])
	p.members = p.members[:base]
	return nil
}

// collect writes an object with its members in the order of the input and
// leaves them on the stack in canonical order.
func (p *parser) collect() error {
	if err := p.open('{'); err != nil {
		return err
	}
	base := len(p.members)
	for first := true; ; first = false {
		more, err := p.next('}', first)
		if err != nil {
			return err
		}
		if !more {
			return p.sort(p.members[base:])
		}
		m, err := p.member()
		if err != nil {
			return err
		}
		p.members = append(p.members, m)
	}
}

func (p *parser) member() (member, error) {
	p.space()
	m := member{at: p.pos, start: len(p.out)}
	var err error
	if m.name, err = p.unquote(); err != nil {
		return m, err
	}
	p.out = appendQuoted(p.out, m.name)
	p.space()
	if p.peek() != ':' {
		return m, p.fail(ErrSyntax)
	}
	p.pos++
	p.out = append(p.out, ':')
	m.value = len(p.out)
	err = p.value()
	m.end = len(p.out)
	return m, err
}

// sort finds duplicates as well: they end up next to each other, which needs no
// set of names.
func (p *parser) sort(members []member) error {
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	for i := 1; i < len(members); i++ {
		if a, b := members[i-1], members[i]; string(a.name) == string(b.name) {
			return p.failAt(max(a.at, b.at), ErrDuplicateMember)
		}
	}
	return nil
}

// reorder gives the object whose members start at body, the last thing in out,
// the order of members.
func (p *parser) reorder(body int, members []member) {
	if slices.IsSortedFunc(members, func(a, b member) int { return a.start - b.start }) {
		return
	}
	p.scratch = append(p.scratch[:0], p.out[body:]...)
	p.out = p.out[:body]
	for i, m := range members {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.out = append(p.out, p.scratch[m.start-body:m.end-body]...)
	}
	p.out = append(p.out, '}')
}
