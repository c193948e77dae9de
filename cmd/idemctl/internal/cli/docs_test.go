package cli

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

var docs = filepath.Join("..", "..", "..", "..", "docs")

// exitCodesPage is docs/exit-codes.md as the tables in exit.go make it.
func exitCodesPage() string {
	var b strings.Builder
	table := func(codes []exitCode) {
		b.WriteString("| code | meaning |\n|---|---|\n")
		for _, c := range codes {
			fmt.Fprintf(&b, "| %d | %s |\n", c.Code, c.Meaning)
		}
	}
	b.WriteString("# Exit codes of idemctl\n\nScripts may rely on them: a number never changes its meaning.\n\n")
	table(exitCodes())
	b.WriteString(`
A reader that closes the pipe early, as ` + "`head`" + ` does, is no failure: the exit code
is 0.

## idemctl run

` + "`idemctl run`" + ` ends with the exit code of the command that it runs or replays, with
128+n if signal n killed it, and otherwise with 2 or 6 as above or with one of
these. As a command may use the same numbers, ` + "`--result-file`" + ` says for certain what
happened.

`)
	table(runExitCodes())
	b.WriteString("\n## idemctl proxy\n\n" + strings.Replace(proxyCodes, "idemctl proxy", "`idemctl proxy`", 1) + "\n")
	return b.String()
}

// TestExitCodesPage keeps docs/exit-codes.md equal to the tables. UPDATE=1
// writes it.
func TestExitCodesPage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(docs, "exit-codes.md")
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(exitCodesPage()), 0o644))
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, exitCodesPage(), string(page))
}

// TestManualNamesEverything keeps docs/cli.md from forgetting a command or a
// flag.
func TestManualNamesEverything(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(docs, "cli.md"))
	require.NoError(t, err)
	a := &app{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}, getenv: func(string) string { return "" }}
	root := newRootCommand(a)
	for name, cmd := range commands(root) {
		require.Contains(t, string(page), "idemctl "+name, "command")
		for _, flag := range flagNames(cmd) {
			require.Contains(t, string(page), flag, "flag of %s", name)
		}
	}
	for _, flag := range flagNames(root) {
		require.Contains(t, string(page), flag, "global flag")
	}
}

// TestManualHasOutputFormats keeps the table of what -o takes, and the commands to
// it: they refuse every other format before anything else.
func TestManualHasOutputFormats(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(docs, "cli.md"))
	require.NoError(t, err)
	calls := map[string][]string{
		"get": {"a/b"}, "resolve": {"a/b", "--retry", "--reason", "x"}, "run": {"--key", "k", "--", "true"}, "purge": {"--expired", "--yes"},
		"proxy":       {"--to", "http://127.0.0.1:3000", "--scope", "shop", "--check"},
		"token issue": {"--scope", "form"}, "token consume": {"t", "--scope", "form"}, "token inspect": {"t", "--scope", "form"},
		"outbox retry": {"id"}, "outbox drop": {"id", "--yes"}, "fsm show": {"a/b"},
	}
	for name := range commands(newRootCommand(&app{})) {
		if name == "help" || name == "completion" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := "| `" + name + "` |"
			for _, format := range render.FormatNames() {
				f, err := render.ParseFormat(format)
				require.NoError(t, err)
				available := slices.Contains(outputFormats(name), f)
				mark := " |"
				if available {
					mark = " yes |"
				}
				row += mark
				args := append(strings.Fields(name), "-o", format, "--db", filepath.Join(t.TempDir(), "none", "idem.db"))
				args = append(args, calls[name]...)
				var out, errOut bytes.Buffer
				code := Run(t.Context(), args, strings.NewReader(""), &out, &errOut, func(string) string { return "" })
				require.Equal(t, available, code != exitUsage, "-o %s: %s", format, errOut.String())
			}
			require.Contains(t, string(page), row+"\n")
		})
	}
}

// TestEveryCommandHasExamples is what the manual promises.
func TestEveryCommandHasExamples(t *testing.T) {
	t.Parallel()
	root := newRootCommand(&app{})
	for name, cmd := range commands(root) {
		require.NotEmpty(t, cmd.Example, name)
		if parent := cmd.Parent(); parent != root {
			require.NotEmpty(t, parent.Example, parent.Name())
		}
	}
}

// commands yields what can be called, with its name after idemctl: of commands that
// have others only those.
func commands(root *cobra.Command) iter.Seq2[string, *cobra.Command] {
	return func(yield func(string, *cobra.Command) bool) {
		for _, cmd := range root.Commands() {
			members := cmd.Commands()
			if len(members) == 0 || cmd.Name() == "completion" {
				members = []*cobra.Command{cmd}
			}
			for _, member := range members {
				if !member.Hidden && member.Runnable() && !yield(strings.TrimPrefix(member.CommandPath(), "idemctl "), member) {
					return
				}
			}
		}
	}
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	for _, line := range strings.Split(cmd.LocalFlags().FlagUsages(), "\n") {
		if _, rest, found := strings.Cut(line, "--"); found {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, "--"+name)
		}
	}
	return names
}

func TestExitCodesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for _, c := range append(exitCodes(), runExitCodes()...) {
		require.False(t, seen[c.Code], "code %d", c.Code)
		require.NotEmpty(t, c.Meaning)
		seen[c.Code] = true
	}
}
