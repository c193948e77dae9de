package render

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string
	}{
		{"empty", "", ""},
		{"plain", "charge:order-1042", "charge:order-1042"},
		{"unicode text", "naïve 東京 🎉", "naïve 東京 🎉"},
		{"clear screen", "a\x1b[2Jb", `a\x1b[2Jb`},
		{"whitespace", "a\tb\nc\rd", `a\tb\nc\rd`},
		{"nul and del", "\x00\x7f", `\x00\x7f`},
		{"C1 as a character", "\u009b2J", `\u009b2J`},
		{"C1 as a byte", "\x9b2J", `\x9b2J`},
		{"invalid bytes", "a\xff\xc3", `a\xff\xc3`},
		{"surrogate half", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"replacement character", "\ufffd", "\ufffd"},
		{"bidi override", "a\u202eb\u2066", `a\u202eb\u2066`},
		{"zero width", "a\u200bb\ufeff", `a\u200bb\ufeff`},
		{"line separators", "\u2028\u2029", `\u2028\u2029`},
		{"tag characters", "\U000e0041", `\U000e0041`},
		{"hangul filler", "a\u3164", `a\u3164`},
		{"lone backslash", `C:\dir\`, `C:\dir\`},
		{"backslash before a letter of an escape", `C:\new`, `C:\\new`},
		{"two backslashes", `a\\b`, `a\\\b`},
		{"backslash before an escaped byte", "\\\x1b", `\\\x1b`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, Escape(tt.in))
			require.Equal(t, tt.in, unescape(t, tt.want))
		})
	}
}

func TestEscapeOfPlainTextDoesNotAllocate(t *testing.T) {
	text := `webhook:evt_9f2 東京 C:\dir`
	require.Zero(t, testing.AllocsPerRun(100, func() { Escape(text) }))
}

func TestEscapeInvalid(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\x1b\n\\x", escapeInvalid("a\x1b\n\\x"))
	require.Equal(t, "é\n"+`\xff`, escapeInvalid("é\n\xff"))
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x1b]52;c;x\a", `\\n\x`, "\\\xff", "a\u202e\u0300", "\U000e0041世", "\xed\xa0\x80"} {
		f.Add(seed, 5)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		escaped := Escape(s)
		require.Equal(t, s, unescape(t, escaped))
		requireHarmless(t, escaped)

		cut := Truncate(escaped, width)
		requireHarmless(t, cut)
		require.LessOrEqual(t, Width(cut), max(width, 0))
		if Width(escaped) <= width {
			require.Equal(t, escaped, cut)
		}
	})
}

// requireHarmless does not share the classification with Escape.
func requireHarmless(t *testing.T, s string) {
	t.Helper()
	require.True(t, utf8.ValidString(s), "%q", s)
	for _, r := range s {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			t.Fatalf("%U in %q", r, s)
		}
	}
}

func unescape(t *testing.T, s string) string {
	t.Helper()
	var out strings.Builder
	for s != "" {
		size := escapeLen(s)
		switch {
		case size == 0:
			out.WriteByte(s[0])
			s = s[1:]
			continue
		case size == 2:
			out.WriteString(map[byte]string{'n': "\n", 'r': "\r", 't': "\t", '\\': `\`}[s[1]])
		default:
			code, err := strconv.ParseUint(s[2:size], 16, 32)
			require.NoError(t, err)
			if s[1] == 'x' {
				out.WriteByte(byte(code))
			} else {
				out.WriteRune(rune(code))
			}
		}
		s = s[size:]
	}
	return out.String()
}
