// Package torture runs tests that are better the longer they run.
package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Rounds runs rounds, each with a randomness of its own, until the duration in
// IDEM_TORTURE is over, and at least the given number. The name of a round is its
// seed; IDEM_TORTURE_SEED begins with that one.
func Rounds(t *testing.T, rounds int, round func(t *testing.T, random *rand.Rand)) {
	t.Helper()
	var long time.Duration
	if text := os.Getenv("IDEM_TORTURE"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("IDEM_TORTURE: %v", err)
		}
	}
	if testing.Short() {
		rounds = (rounds + 1) / 2
	}
	seed := rand.Uint64()
	if text := os.Getenv("IDEM_TORTURE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("IDEM_TORTURE_SEED: %v", err)
		}
	}
	t.Logf("seeds from %d", seed)
	began := time.Now()
	for n := uint64(0); int(n) < rounds || time.Since(began) < long; n++ {
		t.Run(fmt.Sprint(seed+n), func(t *testing.T) { round(t, rand.New(rand.NewPCG(seed+n, 0))) })
		if t.Failed() {
			return
		}
	}
}
