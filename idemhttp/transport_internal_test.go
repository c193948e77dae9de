package idemhttp

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSameHost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		from, to string
		want     bool
	}{
		{"http://a.test/x", "http://a.test/y", true},
		{"http://a.test", "http://A.TEST:80", true},
		{"http://a.test", "https://a.test", true},
		{"https://a.test:443", "https://a.test", true},
		{"http://a.test:8080", "https://a.test:8080", true},
		{"https://a.test", "http://a.test", false},
		{"http://a.test:8080", "https://a.test", false},
		{"http://a.test:8080", "http://a.test:8081", false},
		{"https://a.test", "https://b.a.test", false},
		{"https://b.a.test", "https://a.test", false},
		{"https://a.test", "https://a.test.evil.test", false},
		{"http://[::1]:80", "http://[::1]", true},
	}
	for _, tt := range tests {
		t.Run(tt.from+" "+tt.to, func(t *testing.T) {
			t.Parallel()
			from, err := url.Parse(tt.from)
			require.NoError(t, err)
			to, err := url.Parse(tt.to)
			require.NoError(t, err)
			require.Equal(t, tt.want, sameHost(from, to))
		})
	}
}

// TestDerivedKeyIsStable: a command of another build must derive the same keys.
func TestDerivedKeyIsStable(t *testing.T) {
	t.Parallel()
	require.Equal(t, "f63b0ad0-66f1-8e08-8291-585771c5396d", derivedKey("a", "bc"))
	require.NotEqual(t, derivedKey("a", "bc"), derivedKey("ab", "c"))
}
