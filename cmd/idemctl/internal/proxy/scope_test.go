package proxy

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
)

func scopeOf(t require.TestingT, name, header string, values ...string) string {
	r := &http.Request{Header: http.Header{}}
	for _, v := range values {
		r.Header.Add(header, v)
	}
	scope, err := scopeFunc(name, header)(r)
	require.NoError(t, err)
	require.NoError(t, idem.Key{Scope: scope, ID: "x"}.Validate())
	return scope
}

func TestScope(t *testing.T) {
	t.Parallel()
	hashed := regexp.MustCompile(`^sha256-[0-9a-f]{32}$`)
	require.Equal(t, "shop", scopeOf(t, "shop", "", "ignored"))
	require.Equal(t, "acme", scopeOf(t, "", "X-Tenant", "acme"))
	require.Equal(t, "shop:acme", scopeOf(t, "shop", "x-tenant", "acme"))
	for _, value := range []string{"a b", "é", strings.Repeat("t", 129), "sha256-00", "a/b", "a,b"} {
		require.Regexp(t, hashed, scopeOf(t, "", "X-Tenant", value), value)
	}
	for _, header := range []string{"Authorization", "Proxy-Authorization", "Cookie", "X-API-Key", "X-Auth-User", "x-session-TOKEN", "Client-Secret"} {
		require.Regexp(t, hashed, scopeOf(t, "", header, "acme"), header)
	}
	require.Equal(t, strings.Repeat("t", 123), scopeOf(t, "shop", "X-Tenant", strings.Repeat("t", 123))[5:])
	require.Regexp(t, hashed, scopeOf(t, "shop", "X-Tenant", strings.Repeat("t", 124))[5:], "it does not fit")
}

func TestScopeRefuses(t *testing.T) {
	t.Parallel()
	of := scopeFunc("shop", "X-Tenant")
	for _, values := range [][]string{nil, {""}, {"a", "b"}, {"a", "a"}} {
		_, err := of(&http.Request{Header: http.Header{"X-Tenant": values}})
		require.Error(t, err, "%q", values)
	}
}

// Two tenants never share a scope, whatever their names: what cannot stand in a
// scope is hashed, and no name looks like a hash of another.
func TestScopeKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	value := rapid.OneOf(
		rapid.StringMatching(`[a-c._:@-]{1,3}`), rapid.StringMatching(`sha256-[0-9a-f]{32}`), rapid.StringMatching(`[ -~]{1,4}`), rapid.StringN(1, 200, 200),
	)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"", "shop", strings.Repeat("s", 88)}).Draw(t, "scope")
		header := rapid.SampledFrom([]string{"X-Tenant", "Authorization"}).Draw(t, "header")
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		if rapid.Bool().Draw(t, "b looks like a") { // as if somebody had seen the other's scope
			b = scopeOf(t, name, header, a)
			if name != "" {
				b = strings.TrimPrefix(b, name+":")
			}
		}
		same := scopeOf(t, name, header, a) == scopeOf(t, name, header, b)
		require.Equal(t, a == b, same, "%q and %q", a, b)
	})
}
