// Package canonjson turns JSON text into one canonical spelling, so that two
// texts with the same meaning have the same bytes and can be hashed or compared.
//
// The rules are those of RFC 8785 (JCS): no white space, members ordered by the
// UTF-16 code units of their names, the shortest string escapes, numbers laid
// out as ECMAScript does. Text that readers are known to disagree about
// (repeated names, lone surrogates, invalid UTF-8) is an error, because
// picking one reading could make two different requests equal.
//
// # Numbers
//
// RFC 8785 rounds every number to a float64 first. That would make
// 9007199254740993 equal to 9007199254740992, so this package keeps the exact
// decimal value and only applies the ECMAScript layout to it:
//
//	1.0, 1e0, 10e-1         1
//	-0                      0
//	1E30                    1e+30
//	9007199254740993        9007199254740993        (RFC 8785: 9007199254740992)
//	0.10000000000000000555  0.10000000000000000555  (RFC 8785: 0.1)
//	1e400                   1e+400                  (RFC 8785: an error)
//
// The result is that of RFC 8785 whenever the number has the digits of the
// shortest text that identifies its float64, which is how ECMAScript, Go and
// most other encoders write one. Otherwise two spellings are equal only if
// they denote the same decimal value.
//
// # Limits
//
// Nesting is limited by [MaxDepth] and the size of exponents by [MaxExponent].
// No number is ever expanded to more than 21 digits beyond those it was written
// with. Time is linear in the input apart from ordering names and, for objects
// out of order, one copy per level of nesting.
package canonjson

import (
	"encoding/binary"
	"errors"
)

const (
	// MaxDepth is how many arrays and objects may be open at once. It bounds
	// the stack and the copying that nested objects cause.
	MaxDepth = 128

	// MaxExponent is the largest magnitude of a number's exponent in scientific
	// notation. It is the same on 32-bit and 64-bit machines. Zero has no
	// exponent, however it is written.
	MaxExponent = 1<<31 - 1
)

// Every error from this package wraps exactly one of these and gives the byte
// offset of the problem. Errors never quote the input, which may be private.
var (
	// ErrSyntax is returned for text that is not exactly one JSON value,
	// including empty input and anything but white space after the value.
	ErrSyntax = errors.New("invalid json")

	// ErrInvalidUTF8 is returned for a string that is not valid UTF-8.
	// The offset is that of the string's first byte.
	ErrInvalidUTF8 = errors.New("invalid utf-8 in string")

	// ErrLoneSurrogate is returned for a \u escape that is one half of a
	// surrogate pair without the other half.
	ErrLoneSurrogate = errors.New("lone surrogate in string")

	// ErrDuplicateMember is returned for an object with two members whose names
	// are equal once unescaped. The offset is that of one of the later ones.
	ErrDuplicateMember = errors.New("duplicate member name")

	// ErrTooDeep is returned for nesting beyond [MaxDepth].
	ErrTooDeep = errors.New("nesting too deep")

	// ErrExponent is returned for an exponent beyond [MaxExponent].
	ErrExponent = errors.New("exponent out of range")
)

// Member is one name and value of a JSON object.
type Member struct {
	// Name is the unescaped name, valid UTF-8.
	Name string

	// Value is the canonical form of the value.
	Value []byte
}

// Canonicalize returns the canonical form of the one JSON value in data. The
// result is new memory; data is neither changed nor kept. It is safe for
// concurrent use.
//
// The canonical form is itself valid JSON and its own canonical form.
func Canonicalize(data []byte) ([]byte, error) {
	p := newParser(data)
	if err := p.value(); err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return p.out, nil
}

// Members returns the top-level members of the JSON object in data, in the
// order of RFC 8785, each with its value in canonical form. If data is valid
// JSON but not an object, ok is false and err is nil. It accepts and refuses
// exactly what [Canonicalize] does and is safe for concurrent use.
//
// The values share one block of memory that belongs to the caller.
func Members(data []byte) (members []Member, ok bool, err error) {
	p := newParser(data)
	p.space()
	if p.peek() != '{' {
		_, err := Canonicalize(data)
		return nil, false, err
	}
	if err := p.collect(); err != nil {
		return nil, false, err
	}
	if err := p.end(); err != nil {
		return nil, false, err
	}
	members = make([]Member, len(p.members))
	for i, m := range p.members {
		// The capacity is cut so that an append cannot run into the next value.
		members[i] = Member{Name: string(m.name), Value: p.out[m.value:m.end:m.end]}
	}
	return members, true, nil
}

// Pack writes members one after the other so that no other list of members gives
// the same bytes.
func Pack(members []Member) []byte {
	var b []byte
	for _, m := range members {
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.Name)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.Value)))
		b = append(append(b, m.Name...), m.Value...)
	}
	return b
}
