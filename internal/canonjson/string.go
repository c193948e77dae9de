package canonjson

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

func (p *parser) text() error {
	s, err := p.unquote()
	if err != nil {
		return err
	}
	p.out = appendQuoted(p.out, s)
	return nil
}

// unquote reads a string and returns its unescaped bytes, without a copy when
// there is nothing to unescape.
func (p *parser) unquote() ([]byte, error) {
	if p.peek() != '"' {
		return nil, p.fail(ErrSyntax)
	}
	start, escaped := p.pos+1, false
	for i := start; i < len(p.in); i++ {
		switch c := p.in[i]; {
		case c == '"':
			if !utf8.Valid(p.in[start:i]) {
				return nil, p.fail(ErrInvalidUTF8)
			}
			p.pos = start
			s := p.in[start:i]
			if escaped {
				var err error
				if s, err = p.unescape(i); err != nil {
					return nil, err
				}
			}
			p.pos = i + 1
			return s, nil
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return nil, p.failAt(i, ErrSyntax)
		}
	}
	return nil, p.failAt(len(p.in), ErrSyntax)
}

func (p *parser) unescape(end int) ([]byte, error) {
	start := len(p.unescaped)
	for {
		i := bytes.IndexByte(p.in[p.pos:end], '\\')
		if i < 0 {
			p.unescaped = append(p.unescaped, p.in[p.pos:end]...)
			return p.unescaped[start:], nil
		}
		p.unescaped = append(p.unescaped, p.in[p.pos:p.pos+i]...)
		p.pos += i
		if err := p.escape(end); err != nil {
			return nil, err
		}
	}
}

// escape may look at the byte after the backslash without a check: unquote
// never ends a string right after one.
func (p *parser) escape(end int) error {
	c := p.in[p.pos+1]
	switch c {
	case 'u':
		return p.escapeUnicode(end)
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	default:
		return p.fail(ErrSyntax)
	}
	p.unescaped = append(p.unescaped, c)
	p.pos += 2
	return nil
}

func (p *parser) escapeUnicode(end int) error {
	r, ok := codeUnit(p.in[p.pos:end])
	if !ok {
		return p.fail(ErrSyntax)
	}
	size := 6
	if utf16.IsSurrogate(r) {
		low, _ := codeUnit(p.in[p.pos+size : end])
		// DecodeRune has no other way to yield U+FFFD: it stands outside the
		// range that pairs encode.
		if r = utf16.DecodeRune(r, low); r == unicode.ReplacementChar {
			return p.fail(ErrLoneSurrogate)
		}
		size = 12
	}
	p.unescaped = utf8.AppendRune(p.unescaped, r)
	p.pos += size
	return nil
}

// codeUnit reads \uXXXX at the start of s.
func codeUnit(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	u, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return rune(u), err == nil
}

func appendQuoted(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	done := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// compareUTF16 orders valid UTF-8 by its UTF-16 code units, without converting
// it. The byte order of UTF-8 is that of code points; UTF-16 differs only in
// that U+10000 and up, written with surrogates, come before U+E000 to U+FFFF.
func compareUTF16(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return int(utf16Weight(a[i])) - int(utf16Weight(b[i]))
		}
	}
	return len(a) - len(b)
}

// utf16Weight moves 0xEE and 0xEF, which only ever start U+E000 to U+FFFF,
// behind 0xF0 to 0xF4, which only ever start U+10000 and up.
func utf16Weight(c byte) byte {
	if c == 0xee || c == 0xef {
		return c + 0x10
	}
	return c
}
