package fsm

import (
	"fmt"
	"slices"
	"strings"
)

// Mermaid returns the machine as the text of a Mermaid state diagram, version 2.
// It is the same for the same definition.
func (m *Machine) Mermaid() string {
	states := slices.Concat(m.def.layers()...)
	// Names are given as text only: some are words of Mermaid's language.
	id := make(map[string]string, len(states))
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    direction LR\n")
	for n, state := range states {
		id[state] = fmt.Sprintf("s%d", n)
		fmt.Fprintf(&b, "    state %q as %s\n", state, id[state])
	}
	fmt.Fprintf(&b, "    [*] --> %s\n", id[m.def.Initial])
	for _, state := range states {
		for _, next := range m.def.Transitions[state] {
			fmt.Fprintf(&b, "    %s --> %s\n", id[state], id[next])
		}
		if len(m.def.Transitions[state]) == 0 {
			fmt.Fprintf(&b, "    %s --> [*]\n", id[state])
		}
	}
	return b.String()
}
