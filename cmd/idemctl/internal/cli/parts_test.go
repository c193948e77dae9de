package cli

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
)

func TestHistogramPercentile(t *testing.T) {
	t.Parallel()
	var h histogram
	require.Zero(t, h.percentile(0.5))
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	for _, tt := range []struct {
		p    float64
		want time.Duration
	}{{0.5, 500 * time.Millisecond}, {0.95, 950 * time.Millisecond}, {0.99, 990 * time.Millisecond}, {1, time.Second}} {
		require.InEpsilon(t, tt.want, h.percentile(tt.p), 0.05, "p%v", tt.p)
	}
}

func TestHistogramTakesAnyDuration(t *testing.T) {
	t.Parallel()
	var h histogram
	for _, d := range []time.Duration{-time.Hour, 0, 1, 1<<63 - 1} {
		h.add(d)
	}
	require.EqualValues(t, 4, h.count)
	require.Greater(t, h.percentile(1), 10000*time.Hour)
}

func TestMatchGlob(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, key string
		want         bool
	}{
		{"charge/*", "charge/a/b", true},
		{"*", "charge/a", true},
		{"*/a", "charge/x/a", true},
		{"charge?a", "charge/a", true},
		{"charge/[ab]", "charge/b", true},
		{"charge/[^ab]", "charge/b", false},
		{"charge", "charge/a", false},
		{`charge/\*`, "charge/*", true},
		{"[", "[", false},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, matchGlob(tt.pattern, tt.key), "matchGlob(%q, %q)", tt.pattern, tt.key)
	}
}

func TestPrintableLeavesNothingUnsafe(t *testing.T) {
	t.Parallel()
	require.Equal(t, `no record for "a\u202eb"`, printable(`no record for "a\u202eb"`))
	rapid.Check(t, func(t *rapid.T) {
		text := printable(rapid.String().Draw(t, "text"))
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\n")
		require.True(t, strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x202e }) < 0)
	})
}

// TestTopListKeepsTheFirst compares with sorting everything.
func TestTopListKeepsTheFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOf(rapid.IntRange(0, 5)).Draw(t, "sizes")
		limit := rapid.IntRange(0, 8).Draw(t, "limit")
		order := sortOrders()["size"]
		top := topList{limit: limit, order: order}
		var all []entry
		cut := false
		for i, size := range sizes {
			e := entry{Record: idem.Record{Key: idem.Key{Scope: "s", ID: strconv.Itoa(i)}, Size: size}}
			all = append(all, e)
			cut = top.add(e) || cut
		}
		slices.SortFunc(all, func(a, b entry) int {
			if c := order(&a, &b); c != 0 {
				return c
			}
			return compareKeys(&a, &b)
		})
		if limit > 0 && len(all) > limit {
			require.True(t, cut)
			all = all[:limit]
		}
		got := top.sorted()
		require.Len(t, got, len(all))
		for i := range all {
			require.Equal(t, all[i].Key, got[i].Key)
		}
	})
}

func TestCutHistory(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 59, 0, 0, time.UTC)
	at := func(ago, n int) idem.HourCounts {
		return idem.HourCounts{
			Hour:   now.Truncate(time.Hour).Add(-time.Duration(ago) * time.Hour),
			Events: map[idem.EventKind]uint64{idem.EventExecuted: uint64(n)},
		}
	}
	history := []idem.HourCounts{at(14*24, 1), at(14*24-1, 2), at(24, 4), at(23, 8), at(1, 16), at(0, 32)}
	executed := func(parts []activity) (counts []uint64) {
		for _, part := range parts {
			counts = append(counts, part.events[idem.EventExecuted])
		}
		return counts
	}
	hours := executed(cutHistory(history, now, 1, 24))
	require.Len(t, hours, 24)
	require.Equal(t, []uint64{8, 16, 32}, []uint64{hours[0], hours[22], hours[23]})
	days := executed(cutHistory(history, now, 24, 14))
	require.Len(t, days, 14)
	require.Equal(t, []uint64{2, 4, 56}, []uint64{days[0], days[12], days[13]})
}
