package render

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpark(t *testing.T) {
	t.Parallel()
	require.Equal(t, "▁▂▃▄▅▆▇█", Spark([]int64{0, 1, 2, 3, 4, 5, 6, 7}))
	require.Equal(t, "▁▁▁", Spark([]int64{0, 0, 0}))
	require.Equal(t, "▁▂█", Spark([]int64{0, 1, 1_000_000}))
	require.Equal(t, "███", Spark([]float64{0.1, 0.1, 0.1}))
	require.Equal(t, "▁▁█▂", Spark([]float64{math.NaN(), -3, math.Inf(1), 5}))
	require.Equal(t, "▁█", Spark([]float64{math.Inf(-1), math.SmallestNonzeroFloat64}))
	require.Empty(t, Spark([]int(nil)))
}

func TestBar(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fraction float64
		width    int
		want     string
	}{
		{0, 10, ""},
		{1, 4, "████"},
		{0.5, 4, "██"},
		{0.984, 20, "███████████████████▋"},
		{0.016, 20, "▍"},
		{0.0001, 20, "▏"},
		{7, 3, "███"},
		{-1, 3, ""},
		{math.NaN(), 3, ""},
		{math.Inf(1), 3, "███"},
		{0.5, 0, ""},
		{0.5, -2, ""},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Bar(tt.fraction, tt.width), "Bar(%v, %d)", tt.fraction, tt.width)
	}
}
