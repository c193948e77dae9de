package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/outbox"
)

// bubble runs a test on a file with events in fake time.
func bubble(t *testing.T, events []outbox.Event, test func(t *testing.T, o *outbox.Outbox)) {
	t.Helper()
	s, err := idem.OpenBoltStore(t.Context(), filepath.Join(t.TempDir(), "outbox.db"), idem.BoltConfig{})
	require.NoError(t, err)
	o, err := outbox.New(s)
	require.NoError(t, err)
	appendEvents(t, s, o, events...)
	require.NoError(t, s.Close())
	synctest.Test(t, func(t *testing.T) {
		s, err := idem.OpenBoltStore(t.Context(), s.Path(), idem.BoltConfig{})
		require.NoError(t, err)
		o, err := outbox.New(s)
		require.NoError(t, err)
		test(t, o)
		require.NoError(t, s.Close())
	})
}

// TestStopLetsPublishesEnd: what runs when Run is to stop may end, is marked, and
// nothing else begins.
func TestStopLetsPublishesEnd(t *testing.T) {
	t.Parallel()
	bubble(t, []outbox.Event{event("a", 1), event("a", 2)}, func(t *testing.T, o *outbox.Outbox) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int32
		relay, err := outbox.NewRelay(o, func(ctx context.Context, _ outbox.Event) error {
			calls.Add(1)
			cancel()
			time.Sleep(outbox.DefaultGrace - time.Second)
			return ctx.Err()
		})
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, relay.Run(ctx))
		require.Equal(t, outbox.DefaultGrace-time.Second, time.Since(began))
		require.Equal(t, int32(1), calls.Load())
		require.Equal(t, uint64(1), stats(t, o).Depth)
		require.Equal(t, uint64(1), stats(t, o).Published)
	})
}

// TestStopCutsPublishesOff: after the grace period the context ends, and the
// failure that makes is not counted.
func TestStopCutsPublishesOff(t *testing.T) {
	t.Parallel()
	bubble(t, []outbox.Event{event("a", 1)}, func(t *testing.T, o *outbox.Outbox) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		relay, err := outbox.NewRelay(o, func(ctx context.Context, _ outbox.Event) error {
			<-ctx.Done()
			return ctx.Err()
		}, outbox.WithGrace(time.Minute))
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, relay.Run(ctx))
		require.Equal(t, time.Minute+time.Second, time.Since(began))
		require.Equal(t, outbox.Stats{Depth: 1}, withoutAge(stats(t, o)))
	})
}

// TestStopAbandons a publisher that does not obey its context, and the relay can
// run again.
func TestStopAbandons(t *testing.T) {
	t.Parallel()
	bubble(t, []outbox.Event{event("a", 1), event("b", 1)}, func(t *testing.T, o *outbox.Outbox) {
		hang := make(chan struct{})
		p := newPublisher(2, func(e outbox.Event, attempt int) error {
			if attempt == 1 && e.AggregateID == "a" {
				<-hang
			}
			return nil
		})
		relay, err := outbox.NewRelay(o, p.publish)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, relay.Run(ctx), outbox.ErrAbandoned)
		require.Less(t, time.Since(began), outbox.DefaultGrace+3*time.Second)
		require.Equal(t, uint64(1), stats(t, o).Depth)

		again := start(t, o, p.publish)
		<-p.done
		again.stop(t)
		require.Equal(t, []string{"b-1", "a-1"}, p.seen)
		require.Equal(t, outbox.Stats{Published: 2}, stats(t, o))
		close(hang)
	})
}

// TestCarefulRelay: after a run that did not end well the first publishes are
// announced, and then no more.
func TestCarefulRelay(t *testing.T) {
	t.Parallel()
	var events []outbox.Event
	for n := 1; n <= 30; n++ {
		events = append(events, event("a", n), event("b", n), event("c", n))
	}
	bubble(t, events, func(t *testing.T, o *outbox.Outbox) {
		hang := make(chan struct{})
		hanging, err := outbox.NewRelay(o, func(context.Context, outbox.Event) error { <-hang; return nil }, outbox.WithGrace(0))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, hanging.Run(ctx), outbox.ErrAbandoned)
		close(hang)

		p := newPublisher(len(events), nil)
		r := start(t, o, p.publish, outbox.WithWindow(10, 1<<20, 10, 10))
		<-p.done
		r.stop(t)
		requireOrder(t, p.seen)
		require.Equal(t, outbox.Stats{Published: uint64(len(events))}, stats(t, o))
	})
}

func TestStopBeforeStart(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	appendEvents(t, s, o, event("a", 1))
	p := newPublisher(1, nil)
	relay, err := outbox.NewRelay(o, p.publish)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, relay.Run(ctx))
	require.Empty(t, p.seen)
}

// TestSecondRelay is refused, from another Outbox of the same bucket too, until
// the first has stopped.
func TestSecondRelay(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	appendEvents(t, s, o, event("a", 1))
	p := newPublisher(1, nil)
	r := start(t, o, p.publish)
	<-p.done
	twin, err := outbox.New(s)
	require.NoError(t, err)
	other, err := outbox.New(s, outbox.WithBucket("other"))
	require.NoError(t, err)
	for _, second := range []*outbox.Outbox{o, twin} {
		relay, err := outbox.NewRelay(second, p.publish)
		require.NoError(t, err)
		require.ErrorIs(t, relay.Run(t.Context()), outbox.ErrRunning)
	}
	beside := start(t, other, p.publish)
	beside.stop(t)
	r.stop(t)
	r = start(t, twin, p.publish)
	r.stop(t)
}

// TestRelayStoreCloses: the store's error ends the relay.
func TestRelayStoreCloses(t *testing.T) {
	t.Parallel()
	s, err := idem.OpenBoltStore(t.Context(), filepath.Join(t.TempDir(), "outbox.db"), idem.BoltConfig{})
	require.NoError(t, err)
	o, err := outbox.New(s)
	require.NoError(t, err)
	appendEvents(t, s, o, event("a", 1))
	closing, closed := make(chan struct{}), make(chan struct{})
	r := start(t, o, func(context.Context, outbox.Event) error {
		close(closing)
		<-closed
		return nil
	})
	<-closing
	require.NoError(t, s.Close())
	close(closed)
	require.ErrorIs(t, <-r.ended, idem.ErrClosed)
	relay, err := outbox.NewRelay(o, func(context.Context, outbox.Event) error { return nil })
	require.NoError(t, err)
	require.ErrorIs(t, relay.Run(t.Context()), idem.ErrClosed)
}

// TestRelayReadOnly: there is nothing to run on such a store.
func TestRelayReadOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "outbox.db")
	s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
	require.NoError(t, err)
	o, err := outbox.New(s)
	require.NoError(t, err)
	appendEvents(t, s, o, event("a", 1))
	require.NoError(t, s.Close())
	s, err = idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	o, err = outbox.New(s)
	require.NoError(t, err)
	relay, err := outbox.NewRelay(o, func(context.Context, outbox.Event) error { return errors.New("unused") })
	require.NoError(t, err)
	require.ErrorIs(t, relay.Run(t.Context()), idem.ErrReadOnly)
	require.Equal(t, uint64(1), stats(t, o).Depth)
}

// TestPublisherContext has the values of Run's, and does not end with it.
func TestPublisherContext(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	appendEvents(t, s, o, event("a", 1))
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	relay, err := outbox.NewRelay(o, func(ctx context.Context, _ outbox.Event) error {
		cancel()
		if got := fmt.Sprint(ctx.Value(key{}), ctx.Err()); got != "value<nil>" {
			return errors.New(got)
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, relay.Run(ctx))
	require.Equal(t, outbox.Stats{Published: 1}, stats(t, o))
}
