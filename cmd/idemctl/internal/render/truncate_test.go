package render

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWidth(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want int
	}{
		{"", 0},
		{"abc", 3},
		{"naïve", 5},
		{"nai\u0308ve", 5},
		{"東京", 4},
		{"ｆｕｌｌ", 8},
		{"ｶﾅ", 2},
		{"한국", 4},
		{"\u1112\u1161\u11ab", 2},
		{"🎉", 2},
		{"…▏█→", 4},
		{"𠀀", 2},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Width(tt.in), "Width(%q)", tt.in)
	}
}

func TestWideRangesAreSorted(t *testing.T) {
	t.Parallel()
	last := rune(0)
	for _, block := range wideRanges {
		require.Greater(t, block[0], last)
		require.GreaterOrEqual(t, block[1], block[0])
		last = block[1]
	}
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		width    int
		want     string
	}{
		{"fits", "abc", 3, "abc"},
		{"middle", "webhook:evt_9f2a7788c31", 16, "webhook:ev…88c31"},
		{"four", "abcdefgh", 4, "ab…h"},
		{"two", "abcdefgh", 2, "a…"},
		{"one", "abcdefgh", 1, "…"},
		{"zero", "abc", 0, ""},
		{"negative", "abc", -1, ""},
		{"wide characters never overhang", "東京東京", 6, "東京…"},
		{"room left by the head goes to the tail", "東京abcd", 7, "東京…cd"},
		{"room for half a character stays blank", "a東京東京", 7, "a東…京"},
		{"escape at the head stays whole", `a\x1b[2Jbcd`, 5, "a…bcd"},
		{"escape at the tail stays whole", `abcdefgh\x1b`, 10, "abcdef…"},
		{"escape kept", `a\nbcdefgh`, 6, `a\nb…h`},
		{"marks stay with their letter", "ae\u0301bcdef", 4, "ae\u0301…f"},
		{"only marks", "\u0301\u0301", 0, "\u0301\u0301"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, Truncate(tt.in, tt.width))
		})
	}
}
