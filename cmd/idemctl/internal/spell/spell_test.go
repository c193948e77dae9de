package spell

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"charge", "chrage", 2}, {"kitten", "sitting", 3}, {"order-1", "order-12", 1},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Distance(tt.a, tt.b), "Distance(%q, %q)", tt.a, tt.b)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"listen", "to", "route", "policy"}
	require.Equal(t, "route", Nearest("rout", words))
	require.Equal(t, "listen", Nearest("listne", words))
	require.Empty(t, Nearest("charges", words))
	require.Empty(t, Nearest("route", nil))
}
