package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// round is what some time of work came to.
type round struct {
	Ops     int           `json:"ops"`
	Elapsed time.Duration `json:"elapsed_ns"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
}

func (r round) rate() float64 { return float64(r.Ops) / r.Elapsed.Seconds() }

// runRound lets that many callers do operations on new keys for the given time.
func runRound(s store, callers int, length time.Duration) (round, error) {
	if limit, ok := s.(limiter); ok {
		return limitRound(limit, callers, length)
	}
	claim, result := make([]byte, claimBytes), make([]byte, resultBytes)
	took := make([][]time.Duration, callers)
	failed := make([]error, callers)
	var wg sync.WaitGroup
	began := time.Now()
	for c := range callers {
		wg.Go(func() {
			for now := began; now.Sub(began) < length && failed[c] == nil; {
				failed[c] = s.Do(newKey(), claim, result)
				done := time.Now()
				took[c] = append(took[c], done.Sub(now))
				now = done
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	for _, err := range failed {
		if err != nil {
			return round{}, fmt.Errorf("do: %w", err)
		}
	}
	return summarize(slices.Concat(took...), elapsed), nil
}

func limitRound(limit limiter, callers int, length time.Duration) (round, error) {
	var took []time.Duration
	began := time.Now()
	for now := began; now.Sub(began) < length; {
		if err := limit.DoGroup(callers); err != nil {
			return round{}, err
		}
		done := time.Now()
		took = append(took, done.Sub(now))
		now = done
	}
	r := summarize(took, time.Since(began))
	r.Ops *= callers
	return r, nil
}

func summarize(took []time.Duration, elapsed time.Duration) round {
	slices.Sort(took)
	at := func(share float64) time.Duration { return took[int(share*float64(len(took)-1))] }
	return round{Ops: len(took), Elapsed: elapsed, P50: at(0.50), P99: at(0.99)}
}

// median returns the middle of what of yields for each round; of an even number
// the lower one.
func median[T int | float64 | time.Duration](rounds []round, of func(round) T) T {
	values := make([]T, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
