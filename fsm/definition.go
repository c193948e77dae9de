package fsm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxStateBytes bounds the name of a state, in bytes.
const MaxStateBytes = 64

// Definition declares the states of a machine and how they follow each other.
// Names are 1 to 64 bytes of letters, digits and "._-", and begin with a letter
// or a digit. The zero value is not valid.
type Definition struct {
	// Initial is the state of a new instance.
	Initial string
	// Transitions has a member for every state: the states that can follow it.
	// That of a final state is nil or empty. It must be there all the same, so that
	// a slip in a name is found and does not make one more final state.
	Transitions map[string][]string
}

// check returns every rule that the definition breaks.
func (d Definition) check() error {
	var wrong []error
	broken := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%w: "+format, append([]any{ErrInvalidDefinition}, args...)...))
	}
	_, known := d.Transitions[d.Initial]
	switch {
	case len(d.Transitions) == 0:
		broken("it has no states")
	case d.Initial == "":
		broken("it has no initial state")
	case !known:
		broken("the initial state %q is not declared", d.Initial)
	}
	for _, state := range slices.Sorted(maps.Keys(d.Transitions)) {
		if rule := checkName(state); rule != "" {
			broken("state %q: the name %s", state, rule)
		}
		seen := make(map[string]bool)
		for _, next := range d.Transitions[state] {
			if _, ok := d.Transitions[next]; !ok {
				broken("state %q: %q can follow it, but is not declared", state, next)
			}
			if next == state {
				broken("state %q: it follows itself, which can not be told from a repeat", state)
			}
			if seen[next] {
				broken("state %q: %q is listed twice", state, next)
			}
			seen[next] = true
		}
	}
	if known {
		reached := d.distances()
		for _, state := range slices.Sorted(maps.Keys(d.Transitions)) {
			if _, ok := reached[state]; !ok {
				broken("state %q: nothing leads to it from %q", state, d.Initial)
			}
		}
	}
	return errors.Join(wrong...)
}

// checkName returns the rule that a name breaks, or "".
func checkName(name string) string {
	first, _ := utf8.DecodeRuneInString(name)
	switch {
	case name == "":
		return "is empty"
	case len(name) > MaxStateBytes:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(name), MaxStateBytes)
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case strings.IndexFunc(name, notNameRune) >= 0:
		return `may hold only letters, digits and "._-"`
	case !isWordRune(first):
		return "must begin with a letter or a digit"
	}
	return ""
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func notNameRune(r rune) bool { return !isWordRune(r) && !strings.ContainsRune("._-", r) }

// clone shares no memory with the definition.
func (d Definition) clone() Definition {
	transitions := make(map[string][]string, len(d.Transitions))
	for state, next := range d.Transitions {
		transitions[state] = slices.Clone(next)
	}
	return Definition{Initial: d.Initial, Transitions: transitions}
}

// layers are the declared states by their distance from the initial one, within
// each in the order in which a walk along the transitions meets them.
func (d Definition) layers() [][]string {
	seen := map[string]bool{d.Initial: true}
	var layers [][]string
	for at := []string{d.Initial}; len(at) > 0; {
		layers = append(layers, at)
		var following []string
		for _, state := range at {
			for _, next := range d.Transitions[state] {
				if _, declared := d.Transitions[next]; declared && !seen[next] {
					seen[next] = true
					following = append(following, next)
				}
			}
		}
		at = following
	}
	return layers
}

// distances is layers by state.
func (d Definition) distances() map[string]int {
	distance := make(map[string]int)
	for n, layer := range d.layers() {
		for _, state := range layer {
			distance[state] = n
		}
	}
	return distance
}

// version identifies what the definition allows, in whatever order it was written.
func (d Definition) version() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", d.Initial)
	for _, state := range slices.Sorted(maps.Keys(d.Transitions)) {
		fmt.Fprintf(h, "%q %q\n", state, slices.Sorted(slices.Values(d.Transitions[state])))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
