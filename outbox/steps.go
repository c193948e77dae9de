package outbox

import (
	"iter"
	"math"

	"github.com/idembolt/idem"
)

// stretch is one of numbers, both ends included.
type stretch struct{ from, to uint64 }

const (
	firstStep = 8
	// stepBytes is about how much is read at a time.
	stepBytes = 256 << 10
)

// pairs yields the pairs of a stretch whose keys are numbers. Bucket.Range reads
// hundreds of pairs at a time, however large they are. So it is asked for a few
// numbers, and for twice as many each time as long as they are small or not there.
func (s stretch) pairs(b *idem.Bucket) iter.Seq2[idem.Pair, error] {
	return func(yield func(idem.Pair, error) bool) {
		for from, step := s.from, uint64(firstStep); ; {
			to := s.to
			if s.to-from >= step {
				to = from + step - 1
			}
			bytes := 0
			for p, err := range b.Range(numberKey(from), numberKey(to)) {
				if err == nil && len(p.Key) != numberBytes {
					continue // not by Append
				}
				if !yield(p, err) || err != nil {
					return
				}
				bytes += len(p.Value)
			}
			if to == s.to {
				return
			}
			from = to + 1
			if bytes > stepBytes {
				step = max(step/2, 1)
			} else if step <= math.MaxUint64/2 {
				step *= 2
			}
		}
	}
}
