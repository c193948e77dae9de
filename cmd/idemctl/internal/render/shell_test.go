package render

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestShellQuote(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"charge/order-1", "charge/order-1"},
		{"charge/a b", "'charge/a b'"},
		{"charge/it's", `'charge/it'\''s'`},
		{"charge/$(x)", "'charge/$(x)'"},
		{`charge/a\nb`, `'charge/a\nb'`},
		{"charge/ä", "'charge/ä'"},
		{"", "''"},
		{"x\u202e$(touch pwned)`id`", "$'x\\xe2\\x80\\xae$(touch pwned)`id`'"},
		{"x\u202eb'\\", `$'x\xe2\x80\xae'$'b\'\\'`},
		{"\xff", `$'\xff'`},
		{"a\x1b[2J\n", `$'a\x1b[2J\x0a'`},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, ShellQuote(tt.text))
	}
}

// A shell reads back the same bytes and runs nothing of them, in any locale.
func TestShellQuoteInBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	dir := t.TempDir()
	read := func(t require.TestingT, locale, text string) {
		cmd := exec.Command(bash, "--norc", "-c", "printf %s "+ShellQuote(text))
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL="+locale)
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, text, string(out))
	}
	for _, locale := range []string{"C", "C.UTF-8"} {
		for _, text := range []string{
			"x\u202e$(touch pwned)", "x\u202e'; touch pwned; '", `\'; touch pwned #`, "\u200b\\'$(touch pwned)\\", "a\x1bb`touch pwned`",
			"\xff0f", "\u2028A\n", "!!\u202e!x", "\U000e0041",
		} {
			read(t, locale, text)
		}
	}
	letter := rapid.SampledFrom([]rune{'\'', '\\', '$', '(', ')', '`', '"', 'a', '0', ' ', '\u202e', '\x1b', 'ä', '!', '\n', '*'})
	rapid.Check(t, func(t *rapid.T) {
		read(t, "C", rapid.StringOfN(letter, 0, 12, -1).Draw(t, "text"))
	})
	made, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, made)
}

// What is shown holds nothing that a terminal must not get.
func TestShellQuoteIsSafeToShow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for rest := ShellQuote(rapid.String().Draw(t, "text")); rest != ""; {
			size, unsafe := unsafeRune(rest)
			require.False(t, unsafe)
			rest = rest[size:]
		}
	})
}
