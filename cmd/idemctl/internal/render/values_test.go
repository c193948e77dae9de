package render

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   time.Duration
		want string
	}{
		{0, "0s"},
		{7, "7ns"},
		{412 * time.Microsecond, "412µs"},
		{412 * time.Millisecond, "412ms"},
		{time.Second - 1, "999ms"},
		{time.Second, "1s"},
		{2100 * time.Millisecond, "2.1s"},
		{10*time.Second - 1, "9.9s"},
		{41*time.Second + 900*time.Millisecond, "41s"},
		{14*time.Minute + 59*time.Second, "14m"},
		{2 * time.Hour, "2h"},
		{48*time.Hour - 1, "47h"},
		{72 * time.Hour, "3d"},
		{2*year - 1, "729d"},
		{2 * year, "2y"},
		{-14 * time.Minute, "-14m"},
		{math.MaxInt64, "292y"},
		{math.MinInt64, "-292y"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Age(tt.in), "Age(%d)", tt.in)
	}
}

func TestRelative(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		in   time.Time
		want string
	}{
		{now, "now"},
		{now.Add(-999 * time.Millisecond), "now"},
		{now.Add(-2 * time.Hour), "2h ago"},
		{now.Add(-2100 * time.Millisecond), "2s ago"},
		{now.Add(22*time.Hour + time.Minute), "in 22h"},
		{time.Time{}, "-"},
		{now.AddDate(4000, 0, 0), "in 292y"},
		{time.Unix(0, 0).AddDate(-1000, 0, 0), "292y ago"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Relative(tt.in, now))
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   int64
		want string
	}{
		{0, "0 B"},
		{182, "182 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1024*1024 - 1, "1.0 MiB"},
		{4_300_000, "4.1 MiB"},
		{-2048, "-2.0 KiB"},
		{-5, "-5 B"},
		{math.MaxInt64, "8.0 EiB"},
		{math.MinInt64, "-8.0 EiB"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Bytes(tt.in), "Bytes(%d)", tt.in)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   int64
		want string
	}{
		{0, "0"},
		{999, "999"},
		{1000, "1,000"},
		{18204, "18,204"},
		{-100, "-100"},
		{-1234567, "-1,234,567"},
		{math.MinInt64, "-9,223,372,036,854,775,808"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Count(tt.in), "Count(%d)", tt.in)
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		part, whole int64
		want        string
	}{
		{17906, 18204, "98.4%"},
		{12, 18204, "0.1%"},
		{1, 18204, "<0.1%"},
		{18203, 18204, "99.9%"},
		{0, 5, "0.0%"},
		{5, 5, "100.0%"},
		{0, 0, "-"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Percent(tt.part, tt.whole), "Percent(%d, %d)", tt.part, tt.whole)
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	require.Equal(t, Cell{Text: "18,204", Piped: "18204"}, CountCell(18204))
	require.Equal(t, Cell{Text: "4.1 MiB", Piped: "4300000"}, BytesCell(4_300_000))
	require.Equal(t, Cell{Text: "2h", Piped: "2h14m0s", Style: Yellow}, AgeCell(134*time.Minute).WithStyle(Yellow))
	require.Equal(t, Text("failed").WithStyle(Red), Red.Text("failed"))
}

func TestTimeFormat(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 600, time.FixedZone("x", 3600))
	then := now.Add(-2 * time.Hour)
	tests := []struct {
		flag string
		term Terminal
		want string
		text string
	}{
		{"", wideTTY(), "relative", "2h ago"},
		{"", Terminal{}, "iso", "2030-01-02T00:04:05Z"},
		{"relative", Terminal{}, "relative", "2h ago"},
		{"iso", wideTTY(), "iso", "2030-01-02T00:04:05Z"},
		{"unix", wideTTY(), "unix", "1893542645"},
	}
	for _, tt := range tests {
		format, err := ParseTimeFormat(tt.flag, tt.term)
		require.NoError(t, err)
		require.Equal(t, tt.want, format.String())
		require.Equal(t, tt.text, format.Format(then, now))
		require.Equal(t, "-", format.Format(time.Time{}, now))
	}

	_, err := ParseTimeFormat("ISO", Terminal{})
	require.EqualError(t, err, `unknown time format "ISO": use relative, iso or unix`)
	require.Equal(t, "invalid", TimeFormat(0).String())
}
