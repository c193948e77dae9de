package outbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/outbox"
)

// relayEnv makes the test binary a service that dies; killEnv says when.
const (
	relayEnv = "OUTBOX_TEST_RELAY"
	killEnv  = "OUTBOX_TEST_KILL"
)

// Where the service dies.
const (
	beforePublish = iota
	afterPublish  // the event is out, its publisher has not returned
	afterReturn   // a moment later: before, during or after the commit that marks it
	afterCommit   // of the relay, or of somebody who appends
	onPoison      // whenever it is to publish the event "poison-1"
	killStages
)

const killedAggregates = 6

// die is SIGKILL: nothing of the process gets to run any more.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	fmt.Println("cannot die:", err)
	select {}
}

// countdown dies when it has been called often enough.
type countdown struct {
	stage int
	left  atomic.Int64
}

func (c *countdown) at(stage int) {
	if stage == c.stage && c.left.Add(-1) == 0 {
		die()
	}
}

// runKilledRelay appends events and publishes them to a file, until it dies.
func runKilledRelay(dir string) error {
	ctx := context.Background()
	var kill countdown
	var left int64
	if _, err := fmt.Sscanf(os.Getenv(killEnv), "%d %d", &kill.stage, &left); err != nil {
		return err
	}
	kill.left.Store(left)
	s, err := idem.OpenBoltStore(ctx, filepath.Join(dir, "outbox.db"), idem.BoltConfig{})
	if err != nil {
		return err
	}
	o, err := outbox.New(s)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(dir, "published"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	attempts := outbox.DefaultMaxAttempts
	if kill.stage == onPoison {
		attempts = 3
	}
	relay, err := outbox.NewRelay(o, publishToFile(out, &kill), quick, outbox.WithMaxAttempts(attempts))
	if err != nil {
		return err
	}
	if kill.stage == onPoison {
		return relay.Run(ctx)
	}
	failed := make(chan error)
	go func() { failed <- relay.Run(ctx) }()
	for i := range killedAggregates {
		go func() { failed <- keepAppending(ctx, s, o, fmt.Sprint("x", i)) }()
	}
	go func() {
		for {
			changed, stop := s.WatchBucket(outbox.DefaultBucket)
			<-changed
			stop()
			kill.at(afterCommit)
		}
	}()
	return <-failed
}

func publishToFile(out *os.File, kill *countdown) func(context.Context, outbox.Event) error {
	return func(_ context.Context, e outbox.Event) error {
		if e.AggregateID == "poison" && e.ID == "poison-1" {
			die()
		}
		kill.at(beforePublish)
		if rand.IntN(50) == 0 {
			return outbox.Unavailable(errors.New("no"))
		}
		if _, err := fmt.Fprintln(out, os.Getpid(), e.ID); err != nil {
			return err
		}
		if err := out.Sync(); err != nil {
			return err
		}
		kill.at(afterPublish)
		if kill.stage == afterReturn {
			pause := rand.N(3 * time.Millisecond)
			time.AfterFunc(pause, func() { kill.at(afterReturn) })
		}
		return nil
	}
}

// keepAppending does work, a count, and appends an event with it.
func keepAppending(ctx context.Context, s *idem.BoltStore, o *outbox.Outbox, name string) error {
	for {
		err := s.Update(ctx, func(tx *idem.Tx) error {
			work := tx.Bucket("work")
			before, err := work.Get([]byte(name))
			if err != nil {
				return err
			}
			n, _ := strconv.Atoi(string(before))
			return errors.Join(work.Put([]byte(name), fmt.Append(nil, n+1)), o.Append(tx, event(name, n+1)))
		})
		if err != nil {
			return err
		}
	}
}

// life runs the service until it dies.
func life(t *testing.T, dir string, stage, count int) {
	t.Helper()
	service := exec.CommandContext(t.Context(), os.Args[0])
	service.Env = append(os.Environ(), relayEnv+"="+dir, fmt.Sprintf("%s=%d %d", killEnv, stage, count))
	out, err := service.CombinedOutput()
	require.Error(t, err)
	require.Empty(t, string(out), "it must die, not end")
}

// TestKilledRelay kills the service at every stage, over and over. Nothing that was
// committed is lost, nothing else is published, and each life of the service
// publishes a gapless stretch of each aggregate that begins at or before what is
// new.
func TestKilledRelay(t *testing.T) {
	t.Parallel()
	rounds := 5
	if testing.Short() || raceEnabled {
		rounds = 1
	}
	dir := t.TempDir()
	for range rounds {
		for stage := range onPoison {
			life(t, dir, stage, 1+rand.IntN(80))
		}
	}
	s := openStore(t, filepath.Join(dir, "outbox.db"))
	o, err := outbox.New(s)
	require.NoError(t, err)
	out, err := os.OpenFile(filepath.Join(dir, "published"), os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer out.Close()
	r := start(t, o, publishToFile(out, &countdown{stage: killStages}), quick)
	require.Eventually(t, func() bool { return stats(t, o).Depth == 0 }, time.Minute, time.Millisecond)
	r.stop(t)

	highest := checkPublished(t, dir)
	require.NoError(t, s.View(t.Context(), func(tx *idem.Tx) error {
		for i := range killedAggregates {
			name := fmt.Sprint("x", i)
			n, err := tx.Bucket("work").Get([]byte(name))
			require.NoError(t, err)
			require.Equal(t, string(n), fmt.Sprint(highest[name]), name)
		}
		return nil
	}))
	require.Zero(t, stats(t, o).Parked)
}

// checkPublished returns the last event of each aggregate.
func checkPublished(t *testing.T, dir string) map[string]int {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, "published"))
	require.NoError(t, err)
	defer file.Close()
	highest := make(map[string]int)
	last := make(map[string]int) // by life and aggregate
	repeats := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		pid, id, _ := strings.Cut(lines.Text(), " ")
		name, number, _ := strings.Cut(id, "-")
		n, err := strconv.Atoi(number)
		require.NoError(t, err)
		before, here := last[pid+name]
		switch {
		case here:
			require.Equal(t, before+1, n, "%s in life %s", id, pid)
		default:
			require.LessOrEqual(t, n, highest[name]+1, "%s in life %s", id, pid)
		}
		if n <= highest[name] {
			repeats++
		}
		last[pid+name] = n
		highest[name] = max(highest[name], n)
	}
	t.Logf("up to %v, %d repeats", highest, repeats)
	return highest
}

// TestKillingEvent: an event on which the process dies each time is parked, and
// those that were in flight beside it are not.
func TestKillingEvent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "outbox.db")
	s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
	require.NoError(t, err)
	o, err := outbox.New(s)
	require.NoError(t, err)
	for i := range 20 {
		appendEvents(t, s, o, event(fmt.Sprint("x", i), 1))
	}
	appendEvents(t, s, o, event("poison", 1), event("poison", 2))
	for i := range 20 {
		appendEvents(t, s, o, event(fmt.Sprint("x", i), 2))
	}
	require.NoError(t, s.Close())
	for range 1 + 3 {
		life(t, dir, onPoison, 0)
	}
	s = openStore(t, path)
	o, err = outbox.New(s)
	require.NoError(t, err)
	p := newPublisher(1, nil)
	r := start(t, o, p.publish, outbox.WithMaxAttempts(3))
	require.Eventually(t, func() bool { return stats(t, o).Depth == 0 }, time.Minute, time.Millisecond)
	r.stop(t)
	require.Equal(t, []string{"poison-2"}, p.of("poison"))
	var parked []string
	for e, err := range o.Parked(t.Context()) {
		require.NoError(t, err)
		parked = append(parked, e.Event.ID)
		require.Equal(t, 3, e.Attempts)
		require.Contains(t, e.Error, "process ended")
	}
	require.Equal(t, []string{"poison-1"}, parked)
}
