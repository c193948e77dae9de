package idemhttp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func fingerprintOf(t *testing.T, target, contentType, body string) idem.Fingerprint {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	s, err := spool(r, 64<<10, 1<<20, t.TempDir())
	require.NoError(t, err)
	defer s.close()
	fp, err := idem.NewFingerprint([]byte("0123456789abcdef"), requestParts(r, "POST /a", s))
	require.NoError(t, err)
	return fp
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	const asJSON = "application/json"
	type request struct{ target, contentType, body string }
	tests := []struct {
		name string
		a, b request
		diff []string
	}{
		{"member order and white space", request{"/a", asJSON, `{"a":1,"b":[1, 2]}`}, request{"/a", asJSON, "{\n\"b\":[1,2],\t\"a\":1.0}\n"}, nil},
		{"charset of JSON", request{"/a", asJSON, `{}`}, request{"/a", "Application/JSON; charset=utf-8", ` { } `}, nil},
		{"JSON suffix", request{"/a", "application/vnd.api+json", `{"a":1}`}, request{"/a", "application/vnd.api+json", `{ "a":1}`}, nil},
		{"order of the query", request{"/a?x=1&y=2", asJSON, `1`}, request{"/a?y=2&x=1", asJSON, ` 1`}, nil},
		{"spelling of the query", request{"/a?x=a%20b", "", ""}, request{"/a?x=a+b", "", ""}, nil},
		{"case of a charset", request{"/a", "text/plain; charset=UTF-8", "x"}, request{"/a", "text/plain;charset=utf-8", "x"}, nil},
		{"one member", request{"/a", asJSON, `{"a":1,"b":2}`}, request{"/a", asJSON, `{"a":1,"b":3}`}, []string{"/b"}},
		{"nested", request{"/a", asJSON, `{"a":{"b":[1,2]}}`}, request{"/a", asJSON, `{"a":{"b":[2,1]}}`}, []string{"/a"}},
		{"large numbers", request{"/a", asJSON, `{"a":9007199254740993}`}, request{"/a", asJSON, `{"a":9007199254740992}`}, []string{"/a"}},
		{"member missing", request{"/a", asJSON, `{"a":1,"b":null}`}, request{"/a", asJSON, `{"a":1}`}, []string{"/b"}},
		{"member called like a part", request{"/a", asJSON, `{"path":1}`}, request{"/a", asJSON, `{"path":2}`}, []string{"/path"}},
		{"pointer escapes", request{"/a", asJSON, `{"a/b~":1}`}, request{"/a", asJSON, `{"a/b~":2}`}, []string{"/a~1b~0"}},
		{"no member", request{"/a", asJSON, `{}`}, request{"/a", asJSON, `{"a":1}`}, []string{"/a", "body"}},
		{"array", request{"/a", asJSON, `[1,2]`}, request{"/a", asJSON, `[2,1]`}, []string{"body"}},
		{"repeated member is compared as text", request{"/a", asJSON, `{"a":1,"a":2}`}, request{"/a", asJSON, `{"a":1, "a":2}`}, []string{"body"}},
		{"text is compared as text", request{"/a", "text/plain", `{"a":1}`}, request{"/a", "text/plain", `{ "a":1}`}, []string{"body"}},
		{"path", request{"/a", asJSON, `1`}, request{"/b", asJSON, `1`}, []string{"path"}},
		{"escaped slash", request{"/a%2Fb", asJSON, `1`}, request{"/a/b", asJSON, `1`}, []string{"path"}},
		{"query", request{"/a?x=1", asJSON, `1`}, request{"/a?x=2", asJSON, `1`}, []string{"query"}},
		{"order of equal names", request{"/a?x=1&x=2", asJSON, `1`}, request{"/a?x=2&x=1", asJSON, `1`}, []string{"query"}},
		{"malformed query", request{"/a?x=%zz", asJSON, `1`}, request{"/a?x=%zy", asJSON, `1`}, []string{"query"}},
		{"media type", request{"/a", "text/plain", "x"}, request{"/a", "text/html", "x"}, []string{"media type"}},
		{"no media type", request{"/a", "", "x"}, request{"/a", "text/html", "x"}, []string{"media type"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := fingerprintOf(t, tt.a.target, tt.a.contentType, tt.a.body)
			require.Equal(t, tt.diff, a.Diff(fingerprintOf(t, tt.b.target, tt.b.contentType, tt.b.body)))
		})
	}
}

func TestFingerprintOfManyMembers(t *testing.T) {
	t.Parallel()
	object := func(last int) string {
		var b strings.Builder
		for i := range 500 {
			fmt.Fprintf(&b, `"%03d":0,`, i)
		}
		return fmt.Sprintf(`{%s"%s":1,"999":%d}`, b.String(), strings.Repeat("n/", 80), last)
	}
	a := fingerprintOf(t, "/", "application/json", object(1))
	require.True(t, a.Equal(fingerprintOf(t, "/", "application/json", object(1))))
	require.Equal(t, []string{otherMembers}, a.Diff(fingerprintOf(t, "/", "application/json", object(2))))
}

func TestMemberNamesDoNotMeet(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80)
	seen := make(map[string]string)
	for _, name := range []string{
		"", "a", "/a", "~1a", "~0", "~", long, long + "y", strings.Repeat("/", 40), strings.Repeat("~1", 30),
		strings.TrimPrefix(memberName(long), "/"), "sha256:", otherMembers, "body",
	} {
		part := memberName(name)
		require.LessOrEqual(t, len(part), maxPartNameBytes)
		require.NotContains(t, seen, part, "%q and %q", name, seen[part])
		seen[part] = name
	}
}
