package idem

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
	"github.com/idembolt/idem/internal/torture"
)

// crashConfig opens an image. Nothing that happens from then on must survive a
// crash, so nothing is synced.
var crashConfig = BoltConfig{
	LockTimeout: -1, Grace: -1, CacheBytes: -1, SegmentBytes: minSegmentBytes,
	tap: func(file *boltEngine, c *journal.Config) {
		file.db.NoSync = true
		c.Sync = func(*os.File) error { return nil }
	},
}

// crashCount counts the images and what was in them, as proof that the states
// that matter came up.
type crashCount struct {
	rounds                                                    int
	images, withLog, withoutLog, torn, recoveries, inRecovery int
	transactions                                              int
}

// TestTortureCrashStates records every write and sync of both files while a store
// is used, merged, and closed, and then opens what a crash at any moment may have
// left: what was synced, and of the rest any sectors, old, zero or garbage. The
// writes of some recoveries are recorded too, for crashes during recovery.
func TestTortureCrashStates(t *testing.T) {
	t.Parallel()
	var count crashCount
	torture.Rounds(t, 3, func(t *testing.T, random *rand.Rand) { crashRound(t, random, &count) })
	t.Logf("%d images, %d with a journal, %d without, %d torn, %d of %d recoveries",
		count.images, count.withLog, count.withoutLog, count.torn, count.inRecovery, count.recoveries)
	for _, n := range []int{count.withLog, count.withoutLog, count.torn, count.recoveries, count.inRecovery, count.transactions} {
		require.Greater(t, n, 20)
	}
	require.Greater(t, count.images, 1000)
}

func crashRound(t *testing.T, random *rand.Rand, count *crashCount) {
	path := filepath.Join(crashDir(t), "idem.db")
	require.NoError(t, createBolt(path, time.Now()))
	log, config := recordDisk(t, path, BoltConfig{
		Grace: -1, CacheBytes: -1, SegmentBytes: minSegmentBytes, journalAfter: -1 + 2*random.IntN(2)*random.IntN(40), // from the beginning, or later
	})
	work := &crashWork{log: log, writes: make(map[string][]crashWrite)}
	s, err := OpenBoltStore(t.Context(), path, config)
	require.NoError(t, err)
	if count.rounds++; count.rounds%2 == 0 {
		work.small = true
		work.run(t, s, random.Uint64(), 16, 100)
	} else {
		work.run(t, s, random.Uint64(), 4, 120)
	}
	require.NoError(t, s.Close())
	require.False(t, t.Failed())

	image := filepath.Join(crashDir(t), "idem.db")
	share := 700 / float64(len(log.events)) // of the moments
	log.crashes(func(c *crash) {
		if last := c.at == len(log.events); !last && random.Float64() > share {
			return
		}
		d := c.image(random)
		count.add(c, d)
		work.try(t, d, image, c.at)
		if random.IntN(30) == 0 {
			count.recoveries++
			work.crashRecovery(t, d, image, c.at, random, count)
		}
	})
	count.transactions += work.transactions
}

func (n *crashCount) add(c *crash, d disk) {
	n.images++
	if d.log != nil {
		n.withLog++
	} else {
		n.withoutLog++
	}
	if len(c.pending.file)+len(c.pending.log) > 0 {
		n.torn++
	}
}

// try verifies an image. One that fails is kept.
func (w *crashWork) try(t *testing.T, d disk, path string, at int) {
	d.write(t, path)
	defer func() {
		if !t.Failed() {
			return
		}
		dir, err := os.MkdirTemp("", "idem-crash-")
		if err == nil {
			d.write(t, filepath.Join(dir, "idem.db"))
		}
		t.Logf("moment %d of %d, the image is in %s", at, len(w.log.events), dir)
	}()
	w.verify(t, path, at)
}

// crashRecovery recovers an image, records that, and tries crashes in between.
func (w *crashWork) crashRecovery(t *testing.T, d disk, path string, at int, random *rand.Rand, count *crashCount) {
	d.write(t, path)
	log, config := recordDisk(t, path, BoltConfig{Grace: -1, CacheBytes: -1, SegmentBytes: minSegmentBytes, LockTimeout: -1})
	s, err := OpenBoltStore(t.Context(), path, config)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	share := 10 / float64(len(log.events)+1)
	log.crashes(func(c *crash) {
		if random.Float64() > share {
			return
		}
		d := c.image(random)
		count.add(c, d)
		count.inRecovery++
		w.try(t, d, path, at)
	})
}
