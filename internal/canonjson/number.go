package canonjson

import (
	"bytes"
	"strconv"
)

// number normalises the decimal digits and never goes through a float64: where
// RFC 8785 would not round, the ECMAScript layout of the digits is the same,
// and where it would, rounding is what must not happen.
func (p *parser) number() error {
	negative := p.peek() == '-'
	if negative {
		p.pos++
	}
	start := p.pos
	whole := p.digitRun()
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return p.failAt(start, ErrSyntax)
	}
	var fraction []byte
	if p.peek() == '.' {
		p.pos++
		if fraction = p.digitRun(); len(fraction) == 0 {
			return p.fail(ErrSyntax)
		}
	}
	exponent, err := p.exponent()
	if err != nil {
		return err
	}
	p.digits = append(append(p.digits[:0], whole...), fraction...)
	significant := bytes.TrimLeft(p.digits, "0")
	point := int64(len(whole)) - int64(len(p.digits)-len(significant)) + exponent
	significant = bytes.TrimRight(significant, "0")
	if len(significant) == 0 {
		p.out = append(p.out, '0')
		return nil
	}
	if point-1 < -MaxExponent || point-1 > MaxExponent {
		return p.failAt(start, ErrExponent)
	}
	if negative {
		p.out = append(p.out, '-')
	}
	p.out = appendDecimal(p.out, significant, point)
	return nil
}

func (p *parser) digitRun() []byte {
	start := p.pos
	for p.pos < len(p.in) && '0' <= p.in[p.pos] && p.in[p.pos] <= '9' {
		p.pos++
	}
	return p.in[start:p.pos]
}

// exponent reads the optional exponent of a number. It stops counting at a
// value that no number of digits in memory can bring back into range.
func (p *parser) exponent() (int64, error) {
	if c := p.peek(); c != 'e' && c != 'E' {
		return 0, nil
	}
	p.pos++
	sign := int64(1)
	switch p.peek() {
	case '-':
		sign = -1
		p.pos++
	case '+':
		p.pos++
	}
	digits := p.digitRun()
	if len(digits) == 0 {
		return 0, p.fail(ErrSyntax)
	}
	var n int64
	for _, c := range digits {
		n = min(n*10+int64(c-'0'), 1<<56)
	}
	return sign * n, nil
}

// appendDecimal writes 0.digits × 10^point as ECMAScript's Number::toString
// lays it out. digits neither starts nor ends with a zero, so every value has
// one spelling and no two share one.
func appendDecimal(dst, digits []byte, point int64) []byte {
	const zeros = "000000000000000000000"
	count := int64(len(digits))
	switch {
	case count <= point && point <= 21:
		dst = append(dst, digits...)
		return append(dst, zeros[:point-count]...)
	case 0 < point && point <= 21:
		dst = append(append(dst, digits[:point]...), '.')
		return append(dst, digits[point:]...)
	case -6 < point && point <= 0:
		dst = append(append(dst, "0."...), zeros[:-point]...)
		return append(dst, digits...)
	}
	dst = append(dst, digits[0])
	if count > 1 {
		dst = append(append(dst, '.'), digits[1:]...)
	}
	dst = append(dst, 'e')
	if point > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, point-1, 10)
}
