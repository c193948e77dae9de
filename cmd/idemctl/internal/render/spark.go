package render

import (
	"math"
	"strings"
)

const (
	sparkBlocks = "▁▂▃▄▅▆▇█"
	barBlocks   = "▏▎▍▌▋▊▉█"
	blockSize   = len("█") // every block takes three bytes
)

// Spark draws one block per value, scaled from zero to the largest. The lowest
// block means zero, also for negative values and NaN; anything above zero is at
// least the second, so a single event among thousands is still seen. All
// zeroes are a line of lowest blocks.
func Spark[T ~int | ~int64 | ~float64](values []T) string {
	largest := 0.0
	for _, value := range values {
		largest = math.Max(largest, height(float64(value)))
	}
	var line strings.Builder
	for _, value := range values {
		level := 0
		if h := height(float64(value)); h > 0 {
			level = max(1, int(math.Ceil(h/largest*7)))
		}
		line.WriteString(sparkBlocks[level*blockSize : (level+1)*blockSize])
	}
	return line.String()
}

// height maps what cannot be drawn onto what can.
func height(value float64) float64 {
	if !(value > 0) { // also true of NaN
		return 0
	}
	return math.Min(value, math.MaxFloat64)
}

// Bar draws fraction, from 0 to 1, of width columns in steps of an eighth. It
// is as long as it has to be, without blanks after it. Fractions outside the
// range count as its ends, NaN as 0; anything above zero is at least an eighth.
func Bar(fraction float64, width int) string {
	fraction = math.Min(height(fraction), 1)
	if fraction == 0 || width <= 0 {
		return ""
	}
	eighths := max(1, int(math.Round(fraction*float64(width)*8)))
	bar := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		bar += barBlocks[(part-1)*blockSize : part*blockSize]
	}
	return bar
}
