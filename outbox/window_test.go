package outbox_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/outbox"
)

// TestRelaySmallWindow publishes random mixes of events with random failures through
// windows so small that everybody falls behind all the time, while events come in.
func TestRelaySmallWindow(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "outbox.db"))
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		o, err := outbox.New(s, outbox.WithBucket(fmt.Sprint("round", round)))
		require.NoError(rt, err)
		total := rapid.IntRange(1, 150).Draw(rt, "events")
		aggregates := rapid.IntRange(1, 40).Draw(rt, "aggregates")
		percent := rapid.IntRange(0, 60).Draw(rt, "failing")
		opts := []outbox.RelayOption{
			outbox.WithWindow(rapid.IntRange(2, 40).Draw(rt, "window"), rapid.IntRange(1, 4000).Draw(rt, "bytes"),
				rapid.IntRange(1, 20).Draw(rt, "waiting"), rapid.IntRange(1, 30).Draw(rt, "read")),
			outbox.WithWorkers(rapid.IntRange(1, 10).Draw(rt, "workers")),
			outbox.WithBackoff(time.Millisecond, time.Millisecond), outbox.WithMaxAttempts(0),
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		rnd := rand.New(rand.NewPCG(seed, 0))
		failures := make(map[string]int)
		p := newPublisher(total, func(e outbox.Event, attempt int) error {
			if attempt <= failures[e.ID] {
				return errors.New("no")
			}
			return nil
		})
		numbers := make(map[string]int)
		var mix []outbox.Event
		for range total {
			name := fmt.Sprint("x", min(rnd.IntN(aggregates), rnd.IntN(aggregates)))
			numbers[name]++
			e := event(name, numbers[name])
			mix = append(mix, e)
			if rnd.IntN(100) < percent {
				failures[e.ID] = 1 + rnd.IntN(3)
			}
		}
		first := rnd.IntN(total + 1)
		appendEvents(t, s, o, mix[:first]...)
		r := start(t, o, p.publish, opts...)
		appendEvents(t, s, o, mix[first:]...)
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			rt.Fatalf("stuck: %+v", stats(t, o))
		}
		r.stop(t)
		requireOrder(t, p.seen)
		require.Equal(rt, outbox.Stats{Published: uint64(total), Failed: stats(t, o).Failed}, stats(t, o))
		for pair := range leftovers(t, s, fmt.Sprint("round", round)) {
			rt.Fatalf("left in the file: %q", pair)
		}
	})
}

// leftovers are the pairs of an outbox's buckets beside the relay's state.
func leftovers(t *testing.T, s *idem.BoltStore, name string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	require.NoError(t, s.View(t.Context(), func(tx *idem.Tx) error {
		for _, bucket := range []string{name, name + ".attempts", name + ".parked", name + ".relay"} {
			for p, err := range tx.Bucket(bucket).Range(nil, nil) {
				if err != nil {
					return err
				}
				if string(p.Key) != "state" {
					found[fmt.Sprintf("%s/%x", bucket, p.Key)] = string(p.Value)
				}
			}
		}
		return nil
	}))
	return found
}

// TestRelayLargeEvents: events fill the window by their size.
func TestRelayLargeEvents(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	const total, size = 8, 200 << 10
	for n := 1; n <= total; n++ {
		for _, name := range []string{"a", "b"} {
			e := event(name, n)
			e.Payload = make([]byte, size)
			appendEvents(t, s, o, e)
		}
	}
	p := newPublisher(2*total, func(e outbox.Event, attempt int) error {
		if len(e.Payload) != size {
			return fmt.Errorf("payload of %d bytes", len(e.Payload))
		}
		if attempt == 1 {
			return outbox.Unavailable(errors.New("no"))
		}
		return nil
	})
	r := start(t, o, p.publish, quick, outbox.WithWindow(4096, 1<<20, 4096, 512))
	<-p.done
	r.stop(t)
	requireOrder(t, p.seen)
	require.Zero(t, stats(t, o).Failed)
}
