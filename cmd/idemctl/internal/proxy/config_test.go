package proxy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoops(t *testing.T) {
	t.Parallel()
	tests := []struct {
		listen, to string
		want       bool
	}{
		{"127.0.0.1:8080", "http://127.0.0.1:8080", true},
		{"127.0.0.1:8080", "http://localhost:8080/x", true},
		{"localhost:8080", "http://[::1]:8080", true},
		{":80", "http://127.0.0.1", true},
		{"0.0.0.0:443", "https://localhost", true},
		{"[::]:8080", "http://127.0.0.1:8080", true},
		{"shop.internal:80", "http://shop.internal", true},
		{"127.0.0.1:8080", "http://127.0.0.1:3000", false},
		{"127.0.0.1:80", "https://127.0.0.1", false},
		{"127.0.0.1:8080", "http://10.0.0.1:8080", false},
		{":8080", "http://10.0.0.1:8080", false},
		{"10.0.0.1:8080", "http://127.0.0.1:8080", false},
		{"127.0.0.1:0", "http://127.0.0.1:0", false},
	}
	for _, tt := range tests {
		to, err := parseTarget(tt.to)
		require.NoError(t, err)
		require.Equal(t, tt.want, loops(tt.listen, to), "%s to %s", tt.listen, tt.to)
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "localhost:1"} {
		require.True(t, Loopback(address), address)
	}
	for _, address := range []string{":1", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "shop:1", ""} {
		require.False(t, Loopback(address), address)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"right", func(*Config) {}, ""},
		{"no service", func(c *Config) { c.To = nil }, "it is not said which service"},
		{"itself", func(c *Config) { c.Listen = "localhost:3000" }, "it would forward to itself"},
		{"no scope", func(c *Config) { c.Scope = "" }, "it is not said whose keys"},
		{"header alone", func(c *Config) { c.Scope, c.ScopeHeader = "", "X-Tenant" }, ""},
		{"scope beside a tenant", func(c *Config) { c.Scope, c.ScopeHeader = strings.Repeat("s", 88), "X-Tenant" }, ""},
		{"too long beside a tenant", func(c *Config) { c.Scope, c.ScopeHeader = strings.Repeat("s", 89), "X-Tenant" }, "at most 88"},
		{"timeout", func(c *Config) { c.Timeout = 0 }, "--timeout"},
		{"policy", func(c *Config) { c.Policy = "order" }, `--policy: unknown policy "order": did you mean orders?`},
		{"route", func(c *Config) { c.Routes = []Route{{Pattern: "/x", Policy: "p", at: place{"f", 3}}} }, "f:3: route /x: unknown policy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := NewConfig()
			require.NoError(t, c.Set("to", "http://127.0.0.1:3000"))
			require.NoError(t, c.Set("scope", "shop"))
			tt.change(c)
			err := c.Validate()
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
			require.Len(t, Errors(err), 1)
		})
	}
}

func TestAddRoute(t *testing.T) {
	t.Parallel()
	c := NewConfig()
	require.NoError(t, c.AddRoute("--route", "POST /charges wait=1s", "payments"))
	require.Equal(t, "payments", c.Routes[0].Policy)
	require.EqualError(t, c.AddRoute("--route", "POST /b policy=api", "orders"), "--route: route POST /b has two policies, api and orders")
	require.EqualError(t, c.AddRoute("--route", `POST "/c`, ""), "--route: a closing quote is missing")
	require.NoError(t, c.AddRoute("--route", "POST /charges", ""))
	require.ErrorContains(t, c.Validate(), "--route: route POST /charges is already there: --route")
}
