package idemhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, value, want string }{
		{"raw", "abc", "abc"},
		{"quoted", `"abc"`, "abc"},
		{"raw UUID", "8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{"quoted UUID", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{"white space around", " \t\"abc\"  ", "abc"},
		{"white space inside quotes", `" a b "`, " a b "},
		{"raw white space inside", "a b", "a b"},
		{"escaped quote", `"a\"b"`, `a"b`},
		{"escaped backslash", `"a\\b"`, `a\b`},
		{"raw backslash is itself", `a\b`, `a\b`},
		{"raw quote inside", `a"b`, `a"b`},
		{"comma between quotes", `"a,b"`, "a,b"},
		{"longest", strings.Repeat("x", idem.MaxIDBytes), strings.Repeat("x", idem.MaxIDBytes)},
		{"longest, quoted", `"` + strings.Repeat(`\"`, idem.MaxIDBytes) + `"`, strings.Repeat(`"`, idem.MaxIDBytes)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			id, err := parseKey(tt.value)
			require.NoError(t, err)
			require.Equal(t, tt.want, id)
			require.NoError(t, idem.Key{Scope: "s", ID: id}.Validate())
		})
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, value, why string }{
		{"empty", "", "empty"},
		{"white space only", "  \t", "empty"},
		{"empty string", `""`, "empty"},
		{"too long", strings.Repeat("x", idem.MaxIDBytes+1), "256 bytes"},
		{"too long, quoted", `"` + strings.Repeat("x", idem.MaxIDBytes+1) + `"`, "256 bytes"},
		{"control character", "a\x01b", "at byte 1"},
		{"escape", "a\x1b[31m", "control"},
		{"delete", "a\x7f", "control"},
		{"tab inside", "a\tb", "control"},
		{"umlaut", "schlüssel", "ASCII"},
		{"invalid UTF-8", "a\xffb", "ASCII"},
		{"umlaut between quotes", `"ü"`, "ASCII"},
		{"no closing quote", `"abc`, "closing quote"},
		{"only a quote", `"`, "closing quote"},
		{"escaped closing quote", `"abc\"`, "closing quote"},
		{"backslash at the end", `"abc\`, "backslash"},
		{"unknown escape", `"a\nb"`, "backslash"},
		{"parameter", `"abc";a=1`, "follows"},
		{"list of strings", `"a", "b"`, "follows"},
		{"two raw keys joined", "a, b", "comma"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseKey(tt.value)
			require.ErrorContains(t, err, tt.why)
		})
	}
}

func TestReadKey(t *testing.T) {
	t.Parallel()
	const id = "8E03978E-40d5-43dd-bc93-6894a57f9324"
	read := func(values ...string) (string, error) {
		return readKey(http.Header{"Idempotency-Key": values}, "Idempotency-Key", true)
	}
	_, err := readKey(http.Header{}, "Idempotency-Key", true)
	require.Equal(t, &idem.KeyError{Reason: idem.RejectMissing, Detail: "the header is missing"}, err)
	_, err = read("")
	require.ErrorContains(t, err, "empty")
	_, err = read(id, id)
	require.ErrorContains(t, err, "more than once")
	for _, notUUID := range []string{"abc", id + "0", strings.ReplaceAll(id, "-", "0"), "g" + id[1:], "{" + id + "}"} {
		_, err = read(notUUID)
		require.ErrorContains(t, err, "not a UUID", notUUID)
	}
	raw, err := read(id)
	require.NoError(t, err)
	quoted, err := read(`"` + strings.ToLower(id) + `"`)
	require.NoError(t, err)
	require.Equal(t, quoted, raw)
}

// FuzzParseKey: what is accepted is a valid key, and writing it as a structured
// field and reading it again yields the same.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"abc", `"abc"`, `"a\"b\\"`, "", `"`, "a,b", `"a";p`, "\x00", "ü", ` "a" `} {
		f.Add(seed)
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	f.Fuzz(func(t *testing.T, value string) {
		id, err := parseKey(value)
		if err != nil {
			require.Empty(t, id)
			return
		}
		require.NoError(t, idem.Key{Scope: "s", ID: id}.Validate())
		require.NotContains(t, id, "\x7f")
		again, err := parseKey(`"` + escape.Replace(id) + `"`)
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}
