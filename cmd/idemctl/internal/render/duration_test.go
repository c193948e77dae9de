package render

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want time.Duration
	}{
		{"0", 0},
		{"90s", 90 * time.Second},
		{"1h30m", 90 * time.Minute},
		{"30d", 30 * day},
		{"1d12h", 36 * time.Hour},
		{"12h1d", 36 * time.Hour},
		{"1w2d", 9 * day},
		{"1.5d", 36 * time.Hour},
		{".5w", 84 * time.Hour},
		{"0.1d", 2*time.Hour + 24*time.Minute},
		{"1d250µs", day + 250*time.Microsecond},
		{"-1d12h", -36 * time.Hour},
		{"+2d", 2 * day},
		{"106751d", 106751 * day},
		{"-2562047h47m16.854775808s", math.MinInt64},
	}
	for _, tt := range tests {
		got, err := ParseDuration(tt.in)
		require.NoError(t, err, tt.in)
		require.Equal(t, tt.want, got, tt.in)
	}
}

func TestParseDurationErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in, want string
	}{
		{"", `invalid duration "": want a number and a unit, such as 90s, 12h or 30d`},
		{"-", `invalid duration "-": want a number and a unit, such as 90s, 12h or 30d`},
		{"10", `invalid duration "10": no unit after "10", such as s, h or d`},
		{"1d5", `invalid duration "1d5": no unit after "5", such as s, h or d`},
		{"10x", `invalid duration "10x": unknown unit "x", use ns, us, ms, s, m, h, d or w`},
		{"1d-2h", `invalid duration "1d-2h": want a number at "-2h"`},
		{"d", `invalid duration "d": want a number at "d"`},
		{".d", `invalid duration ".d": want a number at ".d"`},
		{"1.2.3d", `invalid duration "1.2.3d": want a number at "1.2.3d"`},
		{"1 d", `invalid duration "1 d": unknown unit " d", use ns, us, ms, s, m, h, d or w`},
		{"1\x1bd", `invalid duration "1\x1bd": unknown unit "\x1bd", use ns, us, ms, s, m, h, d or w`},
		{"106752d", `invalid duration "106752d": longer than 292 years`},
		{"106751d24h", `invalid duration "106751d24h": longer than 292 years`},
		{"99999999999999999999w", `invalid duration "99999999999999999999w": longer than 292 years`},
		{"9999999h", `invalid duration "9999999h": longer than 292 years`},
	}
	for _, tt := range tests {
		_, err := ParseDuration(tt.in)
		require.EqualError(t, err, tt.want)
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"1d12h", "-3w", "1.5d", "9e9h", "106751d24h", "..d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			require.Zero(t, d)
			return
		}
		again, err := ParseDuration(d.String())
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}
