package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// hint is a call of idemctl that can be copied into a shell: it goes to the same
// store. args are printed as they are.
func (a *app) hint(args string) string {
	if a.flags.db == "" {
		return "idemctl " + args
	}
	return "idemctl --db " + render.ShellQuote(a.flags.db) + " " + args
}

// keyHint is hint for a command with a key and further arguments, which may be
// "". A key may look like a flag.
func (a *app) keyHint(command string, key idem.Key, args string) string {
	text := render.ShellQuote(key.String())
	words := []string{command, text, args}
	if strings.HasPrefix(text, "-") {
		words = []string{command, args, "--", text}
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	return a.hint(strings.Join(words, " "))
}

// settleHelp says what a person can do about a key of unknown outcome.
func (a *app) settleHelp(key idem.Key) {
	fmt.Fprintf(a.err, `Find out whether it did its work, then settle the key:
  it did            %s
  it failed         %s
  nothing happened  %s
`, a.keyHint("resolve", key, "--completed --reason TEXT"),
		a.keyHint("resolve", key, "--failed MESSAGE --reason TEXT"),
		a.keyHint("resolve", key, "--retry --reason TEXT"))
}
