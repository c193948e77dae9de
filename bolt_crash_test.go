package idem

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
	"github.com/idembolt/idem/internal/torture"
)

// TestCrash kills a process that uses a store at a random moment, again and
// again, and requires of what is left: every acknowledged record is there with
// its value, an effect whose end was not acknowledged never happens again, the
// lock is free, opening is fast, the file is sound, versions do not go back.
func TestCrash(t *testing.T) {
	if isFaultChild(t) {
		crashChild(t, BoltConfig{LockTimeout: -1})
		return
	}
	t.Parallel()
	rounds, seed := 300, rand.Uint64()
	if testing.Short() {
		rounds = 42
	}
	t.Logf("%d rounds, seed %d", rounds, seed)
	const lanes = 3 // files that are worked on at the same time
	var total crashTotals
	t.Run("files", func(t *testing.T) { // returns when all of them have ended
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				c := &crashes{random: rand.New(rand.NewPCG(seed, uint64(lane))), total: &total, lines: 20}
				for range rounds / lanes {
					c.round(t)
				}
			})
		}
	})
	total.require(t, rounds)
}

// TestTortureKill is TestCrash with a journal from the first commit on, and merges
// all the time.
func TestTortureKill(t *testing.T) {
	if isFaultChild(t) {
		crashChild(t, WithJournal(BoltConfig{LockTimeout: -1}))
		return
	}
	t.Parallel()
	rounds := 20 // in one file
	if testing.Short() {
		rounds = 5
	}
	var total crashTotals
	files := 0
	torture.Rounds(t, 5, func(t *testing.T, random *rand.Rand) {
		c := &crashes{random: random, total: &total, lines: 300}
		for range rounds {
			c.round(t)
		}
		files++
	})
	require.Positive(t, total.left, "no kill left a journal")
	require.Positive(t, total.merging, "no kill after a merge had begun")
	total.require(t, rounds*files)
}

// require requires that the kills hit what they should hit.
func (n *crashTotals) require(t *testing.T, rounds int) {
	t.Logf("%d acknowledged, %d open, %d kills before the file was open, %d journals left, %d after merges",
		n.acked, n.open, n.early, n.left, n.merging)
	require.Greater(t, n.acked, rounds, "the children did no work")
	require.Greater(t, n.open, rounds/10, "hardly a kill hit an attempt")
}

// crashTotals tells whether the kills hit what they should hit.
type crashTotals struct {
	sync.Mutex
	acked, open, early int
	left, merging      int // journals left, kills after a merge had begun
}

// crashes is a series of crashes, with a new file every 20 rounds.
type crashes struct {
	random *rand.Rand
	total  *crashTotals
	path   string
	rounds int
	top    uint64 // highest version acknowledged in this file
	merged uint64 // generation of its journal that was merged last
	lines  int    // after at most so many, and a little while, a child is killed
}

func (c *crashes) round(t *testing.T) {
	if c.rounds%20 == 0 {
		c.path, c.top, c.merged = faultPath(t), 0, 0
	}
	c.rounds++
	effects, acks := c.kill(t)
	c.verify(t, effects, acks)
}

// kill runs a child, kills it, and returns the keys whose effect it reported and
// the version of every key whose completion was acknowledged.
func (c *crashes) kill(t *testing.T) (effects map[string]bool, acks map[string]uint64) {
	cmd := faultChild(t, "IDEM_FAULT_PATH="+c.path, fmt.Sprintf("IDEM_FAULT_ROUND=%d", c.rounds))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())

	effects, acks = make(map[string]bool), make(map[string]uint64)
	var once sync.Once
	die := func() { once.Do(func() { _ = cmd.Process.Kill() }) }
	if c.random.IntN(10) == 0 {
		early := time.AfterFunc(time.Duration(c.random.IntN(60))*time.Millisecond, die) // while it starts, opens or creates
		defer early.Stop()
	}
	deadline := time.AfterFunc(30*time.Second, die)
	defer deadline.Stop()
	last := 1 + c.random.IntN(c.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); last-- {
		if last == 0 { // in the middle of what comes after this line
			timer := time.AfterFunc(time.Duration(c.random.IntN(2000))*time.Microsecond, die)
			defer timer.Stop()
		}
		var id string
		var version uint64
		if n, _ := fmt.Sscanf(lines.Text(), "ack %s %d", &id, &version); n == 2 {
			acks[id] = version
		} else if n, _ := fmt.Sscanf(lines.Text(), "effect %s", &id); n == 1 {
			effects[id] = true
		} else {
			t.Errorf("child: %s", lines.Text())
		}
	}
	require.Error(t, cmd.Wait(), "the child ended by itself")
	require.Empty(t, stderr.String())
	return effects, acks
}

func (c *crashes) verify(t *testing.T, effects map[string]bool, acks map[string]uint64) {
	_, noJournal := os.Stat(c.path + journal.Suffix)
	began := time.Now()
	s := openFault(t, c.path, BoltConfig{LockTimeout: -1}) // the lock must be free at once
	require.Less(t, time.Since(began), 10*time.Second)     // not how long it takes, which TestRecoveryTime measures, but that it does not wait
	left, err := filepath.Glob(c.path + "?*")
	require.NoError(t, err)
	require.Empty(t, left, "leftovers of a creation were not cleared away")

	merged := boltEngineOf(s).mergedGeneration()
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Zero(t, report.Problems, "%v", report.Findings)
	for id, version := range acks {
		require.True(t, effects[id], "%s was acknowledged without an effect", id)
		rec, err := s.Get(t.Context(), faultKey(id))
		require.NoError(t, err, "acknowledged, but not there: %s", id)
		require.Equal(t, Completed, rec.State, id)
		require.Equal(t, version, rec.Version, id)
		require.Equal(t, crashValue(id), string(rec.Value), id)
		c.top = max(c.top, version)
	}
	open := c.repeat(t, s, effects, acks)

	rec, err := s.Create(t.Context(), completed(fmt.Sprintf("round-%d", c.rounds), ""))
	require.NoError(t, err)
	require.Greater(t, rec.Version, c.top, "a version was given again")
	c.top = rec.Version
	require.NoError(t, s.Close())

	c.total.Lock()
	defer c.total.Unlock()
	c.total.acked += len(acks)
	c.total.open += open
	if len(effects) == 0 {
		c.total.early++
	}
	if noJournal == nil {
		c.total.left++
	}
	if merged > c.merged+1 {
		c.total.merging++
	}
	c.merged = merged
}

// repeat does every effect's key again: none of them may run.
func (c *crashes) repeat(t *testing.T, s *BoltStore, effects map[string]bool, acks map[string]uint64) (open int) {
	g, err := New(s)
	require.NoError(t, err)
	for id := range effects {
		res, err := Do(t.Context(), g, faultKey(id), id, func(context.Context, *Attempt) ([]byte, error) {
			t.Errorf("the effect of %s happens a second time", id)
			return nil, nil
		})
		if errors.Is(err, ErrInterrupted) {
			require.Zero(t, acks[id], "acknowledged, but interrupted: %s", id)
			open++
			continue
		}
		require.NoError(t, err, id)
		require.True(t, res.Replayed)
		require.Equal(t, crashValue(id), string(res.Value))
	}
	require.NoError(t, g.Close())
	return open
}

// crashChild works on the store until it is killed. It says on standard output
// when the effect of a key has happened and when Do has returned.
func crashChild(t *testing.T, c BoltConfig) {
	var out sync.Mutex
	say := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	g, err := Open(os.Getenv("IDEM_FAULT_PATH"),
		WithBolt(c), WithJanitor(JanitorConfig{Interval: time.Millisecond, Batch: 5, Pause: time.Microsecond}))
	require.NoError(t, err)
	var callers sync.WaitGroup
	for caller := range 6 {
		callers.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%s-%d-%d", os.Getenv("IDEM_FAULT_ROUND"), caller, i)
				res, err := Do(t.Context(), g, faultKey(id), id, func(context.Context, *Attempt) ([]byte, error) {
					say("effect %s", id)
					return []byte(crashValue(id)), nil
				})
				if err != nil {
					say("error %v", err)
					return
				}
				say("ack %s %d", id, res.Record.Version)
				crashJunk(t.Context(), g, id)
			}
		})
	}
	callers.Wait()
}

// crashJunk gives the janitor work to be killed in: a record that has expired
// by its next round. Errors show as errors of the next key.
func crashJunk(ctx context.Context, g *Guard, id string) {
	_, _ = Do(ctx, g, faultKey("junk-"+id), nil, func(context.Context, *Attempt) (int, error) { return 1, nil },
		WithPolicy(Policy{Retention: time.Millisecond, Lease: time.Second}))
}

// crashValue is up to 8 KiB, so that some values fill pages of their own.
func crashValue(id string) string {
	return strings.Repeat(id+".", 1+int(crashHash(id)%(8<<10))/(len(id)+1))
}

func crashHash(id string) (h uint32) {
	for i := range len(id) {
		h = h*31 + uint32(id[i])
	}
	return h
}
