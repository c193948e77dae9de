package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newTopicCommands returns the help topics: commands that only have a text.
func newTopicCommands() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesText()},
		{Use: "environment", Short: "Environment variables", Long: environmentText},
		{Use: "keys", Short: "How keys are written", Long: keysText},
		{Use: "formatting", Short: "Output for people and for programs", Long: formattingText},
	}
}

func exitCodesText() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n\n")
	writeCodes(&b, exitCodes())
	b.WriteString(`
idemctl run ends with the exit code of the command that it runs or replays, with
128+n if signal n killed it, and otherwise with 2 or 6 as above or with

`)
	writeCodes(&b, runExitCodes())
	b.WriteString("\n" + proxyCodes + "\n")
	b.WriteString("\nNumbers never change their meaning.")
	return b.String()
}

// proxyCodes is for the table and for docs/exit-codes.md.
const proxyCodes = `idemctl proxy ends with 0 when SIGINT or SIGTERM has stopped it and every request
was answered, and with 1 when some were cut off.`

func writeCodes(b *strings.Builder, codes []exitCode) {
	for _, c := range codes {
		fmt.Fprintf(b, "  %3d  %s\n", c.Code, c.Meaning)
	}
}

const environmentText = `IDEM_DB            path of the store's file, unless --db is given
XDG_STATE_HOME     the default store is $XDG_STATE_HOME/idem/idem.db; without it,
                   ~/.local/state/idem/idem.db
IDEM_COLOR         auto, always or never, unless --color is given
NO_COLOR           not empty: no colour
CLICOLOR_FORCE,    not empty and not 0: colour, in a pipe too, where the output is
FORCE_COLOR        meant for eyes
COLUMNS            width of a terminal that does not tell its own

A flag wins over a variable.`

const keysText = `A key is written scope/id. The scope names the operation and, where there are
tenants, the tenant: 1 to 128 letters, digits and "._:@-". The id tells intents
of one scope apart: 1 to 255 bytes of UTF-8 without control characters. It may
hold slashes and blanks, so quote keys in a shell:

  idemctl get 'charge/order 1042'

A key that begins with a dash comes after --:

  idemctl get -- -scope/id

What is printed for people shows characters that are invisible or that reorder
text as escapes such as \u202e. -o json and -o name print keys as they are, and
escape nothing that a program would miss.`

const formattingText = `On a terminal output is for eyes: aligned columns, rounded numbers, relative
times, colour. In a pipe it is for programs: one record a line, tab-separated,
exact numbers, RFC 3339 times in UTC, nothing cut and no colour.

  -o table   the default
  -o wide    more columns
  -o json    one JSON document
  -o jsonl   one JSON object a line
  -o csv     comma-separated values under a header
  -o name    bare keys, for xargs; with -0 they end with a NUL byte

JSON has sizes in bytes and times as RFC 3339 in UTC; what is absent is null.
Notes, questions and errors go to standard error, results to standard output.
--header and --full change what a pipe and a terminal get.`
