package idem

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// torture runs rounds, each with a randomness of its own, until the duration in
// IDEM_TORTURE is over, and at least the given number. The name of a round is its
// seed; IDEM_TORTURE_SEED begins with that one.
func torture(t *testing.T, rounds int, round func(t *testing.T, random *rand.Rand)) {
	t.Helper()
	var long time.Duration
	if text := os.Getenv("IDEM_TORTURE"); text != "" {
		var err error
		long, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	if testing.Short() {
		rounds = (rounds + 1) / 2
	}
	seed := rand.Uint64()
	if text := os.Getenv("IDEM_TORTURE_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
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

// crashDir is a directory in memory, if there is one: thousands of images are
// written, and nothing depends on the disk.
func crashDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "idem-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
