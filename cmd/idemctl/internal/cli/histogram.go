package cli

import (
	"math"
	"time"
)

const (
	histogramGrowth  = 1.05 // so that a percentile is right within 5%
	histogramBuckets = 720  // up to decades
)

// histogram counts durations in buckets that grow exponentially: percentiles of
// any number of them in a few kilobytes. The zero value is empty.
type histogram struct {
	buckets [histogramBuckets]int64
	count   int64
}

func (h *histogram) add(d time.Duration) {
	micros := max(0, float64(d)/float64(time.Microsecond))
	bucket := int(math.Log1p(micros) / math.Log(histogramGrowth))
	h.buckets[min(bucket, histogramBuckets-1)]++
	h.count++
}

// percentile returns the duration that the share p of all does not exceed, from
// 0 to 1; 0 if there are none.
func (h *histogram) percentile(p float64) time.Duration {
	rank := int64(math.Ceil(p * float64(h.count)))
	seen := int64(0)
	for bucket, n := range h.buckets {
		seen += n
		if n > 0 && seen >= rank {
			middle := math.Pow(histogramGrowth, float64(bucket)+0.5) - 1
			return time.Duration(middle * float64(time.Microsecond))
		}
	}
	return 0
}
