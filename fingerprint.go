package idem

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/idembolt/idem/internal/canonjson"
)

const (
	fingerprintV1 = 1
	// maxParts bounds the parts of one fingerprint; the members of a JSON object
	// beyond it are hashed together.
	maxParts         = 64
	maxPartNameBytes = 64
	partSumBytes     = 16
	wholeInput       = "input"
	otherMembers     = "other members"
)

// Fingerprint identifies the content of a request without holding it: a hash
// per named part, keyed with a secret of the store so that small values cannot
// be guessed from it, with a format version. The zero value is the fingerprint
// of no input. Fingerprints are immutable.
type Fingerprint struct {
	version uint8
	parts   []partSum // sorted by name, names unique
}

type partSum struct {
	name string
	sum  [partSumBytes]byte
}

// Parts is an input split by hand: each part is hashed under its name, and a
// mismatch names the parts that differ. Names must be unique and 1 to 64 bytes
// long.
type Parts []Part

// Part is one named piece of an input.
type Part struct {
	Name string
	Data []byte
}

// NewFingerprint hashes the input with the secret. The input is one of
//
//   - nil: no input, the key alone identifies the request;
//   - Parts: split by the caller;
//   - []byte: hashed as it is, as one part named "input";
//   - anything else is encoded as JSON. The members of an object are one part
//     each, any other value is one part named "input". JSON is brought into the
//     canonical form of RFC 8785 first, so that member order, number spelling
//     and escapes do not matter. Unlike there, numbers that a float64 cannot
//     hold stay exact: two different amounts are never equal.
//     As in encoding/json, invalid UTF-8 in a Go string counts as U+FFFD: pass
//     text of unknown encoding as []byte.
//
// It returns an error that matches ErrInvalidInput if the input cannot be
// encoded, is not valid I-JSON, or has bad part names.
func NewFingerprint(secret []byte, input any) (Fingerprint, error) {
	parts, err := splitInput(input)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("%w: %w", ErrInvalidInput, err)
	}
	if len(parts) == 0 {
		return Fingerprint{}, nil
	}
	fp := Fingerprint{version: fingerprintV1, parts: make([]partSum, len(parts))}
	mac := hmac.New(sha256.New, secret)
	buf := make([]byte, 0, 2+maxPartNameBytes) // head and sum in turn: both end up on the heap
	for i, p := range parts {
		if i > 0 {
			mac.Reset()
		}
		buf = append(append(buf[:0], fingerprintV1, byte(len(p.Name))), p.Name...)
		mac.Write(buf)
		mac.Write(p.Data)
		buf = mac.Sum(buf[:0])
		fp.parts[i].name = p.Name
		copy(fp.parts[i].sum[:], buf)
	}
	slices.SortFunc(fp.parts, func(a, b partSum) int { return strings.Compare(a.name, b.name) })
	for i := range fp.parts[1:] {
		if name := fp.parts[i].name; name == fp.parts[i+1].name {
			return Fingerprint{}, fmt.Errorf("%w: part %q is given twice", ErrInvalidInput, name)
		}
	}
	return fp, nil
}

func splitInput(input any) (Parts, error) {
	switch in := input.(type) {
	case nil:
		return nil, nil
	case Parts:
		return in, in.validate()
	case []byte:
		return Parts{{wholeInput, in}}, nil
	}
	data, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	members, isObject, err := canonjson.Members(data)
	if err != nil {
		return nil, err
	}
	if !isObject {
		whole, err := canonjson.Canonicalize(data)
		return Parts{{wholeInput, whole}}, err
	}
	return memberParts(members), nil
}

// memberParts makes a part of each member. Names that are too long are replaced
// by their hash, members beyond maxParts share one part.
func memberParts(members []canonjson.Member) Parts {
	if len(members) == 0 {
		return Parts{{wholeInput, []byte("{}")}}
	}
	alone := len(members)
	if alone > maxParts {
		alone = maxParts - 1
	}
	parts := make(Parts, 0, alone+1)
	for _, m := range members[:alone] {
		parts = append(parts, Part{partName(m.Name), m.Value})
	}
	if rest := members[alone:]; len(rest) > 0 {
		parts = append(parts, Part{otherMembers, canonjson.Pack(rest)})
	}
	return parts
}

// partName keeps short names and replaces long ones. The length is part of the
// replacement, and a JSON member whose name looks like one of ours is replaced
// too, so that two members never share a name.
func partName(member string) string {
	if member != "" && len(member) <= maxPartNameBytes && !strings.HasPrefix(member, "sha256:") && member != otherMembers {
		return member
	}
	sum := sha256.Sum256([]byte(member))
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// validate leaves it to the sorting to find names that are given twice.
func (ps Parts) validate() error {
	if len(ps) > maxParts {
		return fmt.Errorf("%d parts, at most %d are allowed", len(ps), maxParts)
	}
	for _, p := range ps {
		if p.Name == "" || len(p.Name) > maxPartNameBytes {
			return fmt.Errorf("part name %q must have 1 to %d bytes", p.Name, maxPartNameBytes)
		}
	}
	return nil
}

// IsZero reports whether f is the fingerprint of no input.
func (f Fingerprint) IsZero() bool { return len(f.parts) == 0 }

// Names returns the names of the parts, sorted.
func (f Fingerprint) Names() []string {
	names := make([]string, len(f.parts))
	for i, p := range f.parts {
		names[i] = p.name
	}
	return names
}

// Equal reports whether both identify the same content.
func (f Fingerprint) Equal(o Fingerprint) bool {
	return f.version == o.version && slices.Equal(f.parts, o.parts)
}

// Diff returns the names of the parts that differ or are there only once,
// sorted. It is empty exactly if Equal.
func (f Fingerprint) Diff(o Fingerprint) []string {
	var names []string
	a, b := f.parts, o.parts
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
			names, a = append(names, a[0].name), a[1:]
		case len(a) == 0 || b[0].name < a[0].name:
			names, b = append(names, b[0].name), b[1:]
		default:
			if a[0].sum != b[0].sum || f.version != o.version {
				names = append(names, a[0].name)
			}
			a, b = a[1:], b[1:]
		}
	}
	return names
}

// String returns a short form to recognise a fingerprint by, for instance
// "v1:9f2c41d0a3b7c655", or "none".
func (f Fingerprint) String() string {
	if f.IsZero() {
		return "none"
	}
	return fmt.Sprintf("v%d:%016x", f.version, f.digest())
}

// digest folds all parts into one number. The sums are keyed hashes already, so
// a plain hash over them is enough.
func (f Fingerprint) digest() uint64 {
	h := sha256.New()
	for _, p := range f.parts {
		h.Write([]byte(p.name))
		h.Write(p.sum[:])
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
