package proxy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	c, err := Parse("proxy.conf", strings.NewReader(`# the shop
listen 0.0.0.0:9000    # everywhere
	to	"http://127.0.0.1:3000/base"
scope shop
scope-header X-Tenant

route POST /charges policy=slow key=optional timeout=30s wait=0s max-body=1MiB max-response=64KiB store-body=never
policy slow retention=7d retry-window=3d lease=2m interrupted=rerun durability=relaxed
route "PUT /a b" key=required
route /orders/{id}`+"\r\n"))
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.Equal(t, "0.0.0.0:9000", c.Listen)
	require.Equal(t, "http://127.0.0.1:3000/base", c.To.String())
	require.Equal(t, []string{"shop", "X-Tenant", "api"}, []string{c.Scope, c.ScopeHeader, c.Policy})
	require.Equal(t, map[string]idem.Policy{"slow": {
		Retention: 7 * 24 * time.Hour, RetryWindow: 3 * 24 * time.Hour, Lease: 2 * time.Minute, OnInterrupted: idem.Rerun(), Durability: idem.Relaxed,
	}}, c.Policies)
	require.Equal(t, []Route{
		{
			Pattern: "POST /charges", Policy: "slow", Key: KeyOptional, Timeout: 30 * time.Second, MaxBody: 1 << 20, MaxResponse: 64 << 10,
			StoreBody: idemhttp.Never, at: place{"proxy.conf", 7},
		},
		{Pattern: "PUT /a b", Key: KeyRequired, Wait: 30 * time.Second, MaxBody: 10 << 20, MaxResponse: 16 << 20, at: place{"proxy.conf", 9}},
		{Pattern: "/orders/{id}", Wait: 30 * time.Second, MaxBody: 10 << 20, MaxResponse: 16 << 20, at: place{"proxy.conf", 10}},
	}, c.Routes)
}

func TestParsePolicyBeginsAsAPI(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", strings.NewReader("policy mine lease=1m"))
	require.NoError(t, err)
	want := idem.API
	want.Lease = time.Minute
	require.Equal(t, want, c.Policies["mine"])
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, line, want string }{
		{"directive", "rout POST /x", `unknown directive "rout": did you mean route?`},
		{"directive like none", "server {", `unknown directive "server": there are listen, to, scope, scope-header, policy, route`},
		{"listen", "listen 8080", `listen: "8080" is not an address: write host:port, such as 127.0.0.1:8080`},
		{"listen port", "listen a:http", `listen: "a:http" is not an address: the port is a number up to 65535`},
		{"no value", "listen", "listen takes one word, there are 0"},
		{"two values", "scope a b", "scope takes one word, there are 2"},
		{"to without scheme", "to localhost:3000", `to: "localhost:3000" is not a URL: write one such as http://127.0.0.1:3000`},
		{"to scheme", "to ftp://h", `to: "ftp://h" begins with ftp: only http:// and https:// can be forwarded to`},
		{"to host", "to http:///x", `to: "http:///x" names no host`},
		{"to query", "to http://h/?a=b", `to: "http://h/?a=b" has a query or fragment: leave it out, each request has its own`},
		{"to user", "to http://u:p@h", "to: the URL holds a user or password, which would not be sent: leave them out"},
		{"scope", "scope a/b", `scope: "a/b" is not a scope: 1 to 128 letters, digits and "._:@-"`},
		{"scope header", `scope-header "X Y"`, `scope-header: "X Y" is not the name of a header`},
		{"scope header host", "scope-header host", "scope-header: host does not say who is asking: name a header that a gateway sets, such as X-Tenant"},
		{"scope header key", "scope-header idempotency-key", "scope-header: idempotency-key does not say who is asking: name a header that a gateway sets, such as X-Tenant"},
		{"policy without name", "policy lease=1m", "a policy needs a name before its settings, such as policy slow retention=7d"},
		{"policy name", "policy " + strings.Repeat("p", 65), "the name of the policy has 65 bytes, at most 64 are allowed"},
		{"policy built in", "policy orders lease=1m", "policy orders is built in and cannot be defined: choose another name"},
		{"policy setting", "policy p retentoin=1d", `policy p: unknown setting "retentoin": did you mean retention?`},
		{"policy word", "policy p rerun", `policy p: "rerun" is not a setting: write NAME=VALUE`},
		{"policy value", "policy p interrupted=retry", `policy p: interrupted: "retry" is not known: use fail or rerun`},
		{"policy duration", "policy p lease=soon", `policy p: lease: invalid duration "soon": want a number at "soon"`},
		{"policy negative", "policy p lease=-1s", `policy p: lease: invalid duration "-1s": it is negative`},
		{"policy rule", "policy p retention=6h", "policy p: retention must be longer than retry-window (12h0m0s), it is 6h0m0s: a late retry would run again; set one of them"},
		{"policy lease", "policy p lease=1ms", "policy p: lease must be at least 1s, it is 1ms"},
		{"route without pattern", "route", "a route needs a pattern, such as POST /charges"},
		{"route with method alone", "route POST", `"POST" is not a route: write a path after the method, such as POST /charges`},
		{"route without slash", "route POST charges", `"POST" is not a route: write a path after the method, such as POST /charges`},
		{"route pattern", "route POST /{", "route POST /{ is not a pattern: at offset 6: bad wildcard segment (must end with '}')"},
		{"route method small", "route post /x", "route post /x: write the method in capitals, POST"},
		{"route safe", "route GET /x", "route GET /x: GET changes nothing and always passes: leave the route out"},
		{"route method unknown", "route PSOT /x", `route PSOT /x: "PSOT" cannot be protected, only POST, PATCH, PUT, DELETE`},
		{"route setting", "route /x max-boddy=1", `unknown setting "max-boddy": did you mean max-body?`},
		{"route setting twice", "route /x wait=1s wait=2s", "wait is given twice"},
		{"route setting empty", "route /x policy=", "policy has no value"},
		{"route size", "route /x max-body=1MB", `max-body: invalid size "1MB": use a number of bytes, or one with KiB, MiB or GiB`},
		{"route size limit", "route /x max-response=2GiB", `max-response: invalid size "2GiB": at most 1073741824 bytes`},
		{"route timeout", "route /x timeout=0s", "timeout: it must be longer than 0"},
		{"route policy", "route /x policy=payment", `route /x: unknown policy "payment": did you mean payments?`},
		{"quote", `scope "a`, "a closing quote is missing"},
		{"backslash", `scope "\a"`, `a backslash between quotes may only stand before " or \`},
		{"NUL", "scope a\x00", "the line is not text in UTF-8"},
		{"invalid UTF-8", "scope \xff", "the line is not text in UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := Parse("proxy.conf", strings.NewReader("\n"+tt.line+"\n"))
			require.Nil(t, c)
			require.EqualError(t, err, "proxy.conf:2: "+tt.want)
		})
	}
}

// All errors are reported, in the order of their lines.
func TestParseReportsEverything(t *testing.T) {
	t.Parallel()
	_, err := Parse("f", strings.NewReader(`listen x
route POST /a policy=nope
listen 127.0.0.1:1
policy p lease=0s frobnicate=1
policy p lease=1m
route POST /a
route /{x}/new
route POST /a/{y} policy=p
wat
`))
	require.EqualError(t, err, strings.Join([]string{
		`f:1: listen: "x" is not an address: write host:port, such as 127.0.0.1:8080`,
		`f:2: route POST /a: unknown policy "nope": there are api, orders, p, payments`,
		`f:3: listen is already said in line 1`,
		`f:4: policy p: unknown setting "frobnicate": there are retention, lease, retry-window, interrupted, durability`,
		`f:5: policy p is already said in line 4`,
		`f:6: route POST /a is already there: f:2`,
		`f:8: route POST /a/{y} conflicts with /{x}/new (f:7): a request can match both, and neither is the more exact one`,
		`f:9: unknown directive "wat": there are listen, to, scope, scope-header, policy, route`,
	}, "\n"))
	require.Len(t, Errors(err), 8)
}

func TestParseBounds(t *testing.T) {
	t.Parallel()
	_, err := Parse("f", strings.NewReader(strings.Repeat("#", maxFile)))
	require.NoError(t, err)
	_, err = Parse("f", strings.NewReader(strings.Repeat("#", maxFile+1)))
	require.EqualError(t, err, "f: the file is larger than 1 MiB")
	_, err = Parse("f", strings.NewReader(strings.Repeat("route /x\n", maxRoutes+1)))
	require.EqualError(t, err, "f:1001: more than 1000 routes")
	var policies strings.Builder
	for i := range maxPolicies + 1 {
		fmt.Fprintf(&policies, "policy p%d\n", i)
	}
	_, err = Parse("f", strings.NewReader(policies.String()))
	require.EqualError(t, err, "f:101: policy p100: more than 100 policies")
}

// FuzzParse holds every error to a line, and what is accepted to be usable.
func FuzzParse(f *testing.F) {
	f.Add("listen 127.0.0.1:1\nto http://h\nscope s\nroute POST /a/{b...} policy=payments\n")
	f.Add("policy p retention=7d retry-window=3d # x\nroute \"POST /\\\"\" key=optional\n")
	f.Add("scope-header X-T\nroute /{x}/new\nroute POST /a/{y}\nroute GET /\n")
	line := regexp.MustCompile(`^f:[0-9]+: `)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f", strings.NewReader(text))
		if err != nil {
			require.Nil(t, c)
			for _, err := range Errors(err) {
				require.Regexp(t, line, err.Error())
				require.NotContains(t, err.Error(), "\n")
			}
			return
		}
		for _, r := range c.Routes {
			_, errs := parseRoute(place{}, []string{r.Pattern})
			require.Empty(t, errs)
		}
		for _, p := range c.Policies {
			require.NoError(t, p.Validate())
		}
	})
}

// The example in the manual is right.
func TestManualExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```conf\n")
	require.True(t, found, "docs/cli.md has no example")
	example, _, _ := strings.Cut(rest, "```")
	c, err := Parse("docs/cli.md", strings.NewReader(example))
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.NotEmpty(t, c.Routes)
}
