package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/outbox"
)

var quick = outbox.WithBackoff(time.Millisecond, 2*time.Millisecond)

func TestRelayPublishesInOrder(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	p := newPublisher(300, nil)
	r := start(t, o, p.publish)
	for n := 1; n <= 100; n++ { // while it runs: it has to be woken
		appendEvents(t, s, o, event("a", n), event("b", n), event("c", n))
	}
	<-p.done
	r.stop(t)
	for _, aggregate := range []string{"a", "b", "c"} {
		require.Equal(t, ids(aggregate, 1, 100), p.of(aggregate))
	}
	got := stats(t, o)
	require.Equal(t, outbox.Stats{Published: 300}, got)
	entries, err := o.List(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Empty(t, entries, "published events are removed when it has stopped")
}

// TestRelayLoneEvents: what is appended when the relay is idle wakes it, each time.
func TestRelayLoneEvents(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	got := make(chan string)
	r := start(t, o, func(_ context.Context, e outbox.Event) error { got <- e.ID; return nil })
	for n := range 200 {
		e := event("a", n)
		appendEvents(t, s, o, e)
		require.Equal(t, e.ID, <-got)
	}
	r.stop(t)
}

func TestRelayPassesTheEventOn(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	want := outbox.Event{
		ID: "é-1", AggregateType: "order", AggregateID: "o 1", Type: "<Placed>", Payload: []byte{0, 0xFF},
		Headers: map[string]string{"a": "1", "b": ""}, TraceID: "t",
		CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
	}
	appendEvents(t, s, o, want, outbox.Event{AggregateType: "order", AggregateID: "o 1", Type: "Paid"})
	got := make(chan outbox.Event, 2)
	r := start(t, o, func(_ context.Context, e outbox.Event) error { got <- e; return nil })
	require.Equal(t, want, <-got)
	second := <-got
	require.Regexp(t, "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", second.ID)
	require.WithinDuration(t, s.Now(), second.CreatedAt, time.Minute)
	require.Nil(t, second.Payload)
	r.stop(t)
}

// TestRelayFailure: an event that fails holds back its own aggregate, and then
// gets through under its id.
func TestRelayFailure(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error":       func() error { return errors.New("no") },
		"panic":       func() error { panic("no") },
		"nil panic":   func() error { panic(nil) }, //nolint:govet // that is the case
		"goexit":      func() error { runtime.Goexit(); return nil },
		"unavailable": func() error { return outbox.Unavailable(errors.New("no")) },
		"no text":     func() error { return errors.New("") },
		"nil error":   func() error { var e *nilError; return e },
		"invalid UTF": func() error { return errors.New(strings.Repeat("\xff\u20ac", 4096)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := newOutbox(t)
			others := make(chan struct{})
			p := newPublisher(40, nil)
			p.fault = func(e outbox.Event, attempt int) error {
				if e.ID == "a-1" && attempt < 5 {
					return fail()
				}
				if e.ID == "a-1" {
					<-others // they all get through before
				}
				if e.ID == "b-20" {
					close(others)
				}
				return nil
			}
			for n := 1; n <= 20; n++ {
				appendEvents(t, s, o, event("a", n), event("b", n))
			}
			r := start(t, o, p.publish, quick, outbox.WithMaxAttempts(5))
			<-p.done
			r.stop(t)
			require.Equal(t, ids("a", 1, 20), p.of("a"))
			require.Equal(t, ids("b", 1, 20), p.of("b"))
			failed := uint64(4)
			if name == "unavailable" {
				failed = 0
			}
			require.Equal(t, outbox.Stats{Published: 40, Failed: failed}, stats(t, o))
		})
	}
}

// nilError panics when it is asked what it is.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestRelayParks(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	poison := func(e outbox.Event, _ int) error {
		if e.ID == "a-2" {
			return errors.New("indigestible")
		}
		return nil
	}
	p := newPublisher(4, poison)
	for n := 1; n <= 5; n++ {
		appendEvents(t, s, o, event("a", n))
	}
	r := start(t, o, p.publish, quick, outbox.WithMaxAttempts(3))
	<-p.done
	r.stop(t)
	require.Equal(t, []string{"a-1", "a-3", "a-4", "a-5"}, p.of("a"))
	require.Equal(t, 3, p.count["a-2"])
	require.Equal(t, outbox.Stats{Parked: 1, Published: 4, Failed: 3}, stats(t, o))

	var parked []outbox.ParkedEvent
	for e, err := range o.Parked(t.Context()) {
		require.NoError(t, err)
		parked = append(parked, e)
	}
	require.Len(t, parked, 1)
	require.Equal(t, "a-2", parked[0].Event.ID)
	require.Equal(t, event("a", 2).Payload, parked[0].Event.Payload)
	require.Equal(t, uint64(2), parked[0].Number)
	require.Equal(t, 3, parked[0].Attempts)
	require.Equal(t, "indigestible", parked[0].Error)

	require.NoError(t, o.Retry(t.Context(), "a-2"))
	require.Equal(t, outbox.Stats{Depth: 1, Published: 4, Failed: 3}, withoutAge(stats(t, o)))
	p = newPublisher(1, nil)
	r = start(t, o, p.publish)
	<-p.done
	r.stop(t)
	require.Equal(t, []string{"a-2"}, p.seen)
}

func withoutAge(s outbox.Stats) outbox.Stats {
	s.Oldest, s.Lag = time.Time{}, 0
	return s
}

// TestRelayWithoutParking stops the aggregate instead.
func TestRelayWithoutParking(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	p := newPublisher(2, func(e outbox.Event, attempt int) error {
		if attempt < 30 && e.ID == "a-1" {
			return errors.New("no")
		}
		return nil
	})
	appendEvents(t, s, o, event("a", 1), event("a", 2))
	r := start(t, o, p.publish, quick, outbox.WithMaxAttempts(0))
	<-p.done
	r.stop(t)
	require.Equal(t, ids("a", 1, 2), p.of("a"))
}

// TestRelayAttemptsLast: attempts count across restarts.
func TestRelayAttemptsLast(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	appendEvents(t, s, o, event("a", 1))
	for attempt := 1; attempt <= 3; attempt++ {
		failed := make(chan struct{}, 100)
		r := start(t, o, func(context.Context, outbox.Event) error {
			failed <- struct{}{}
			return fmt.Errorf("failure %d", attempt)
		}, outbox.WithBackoff(time.Hour, time.Hour), outbox.WithMaxAttempts(3))
		<-failed
		r.stop(t)
		entries, err := o.List(t.Context(), 0, 10)
		require.NoError(t, err)
		if attempt == 3 {
			require.Empty(t, entries)
			continue
		}
		require.Len(t, entries, 1)
		require.Equal(t, attempt, entries[0].Attempts)
		require.Equal(t, fmt.Sprintf("failure %d", attempt), entries[0].LastError)
	}
	require.Equal(t, outbox.Stats{Parked: 1, Failed: 3}, stats(t, o))
}

// TestRelayBackoff looks at when the attempts are made.
func TestRelayBackoff(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	appendEvents(t, s, o, event("a", 1))
	require.NoError(t, s.Close())
	path := s.Path()
	synctest.Test(t, func(t *testing.T) {
		s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
		require.NoError(t, err)
		o, err := outbox.New(s)
		require.NoError(t, err)
		var at []time.Time
		relay, err := outbox.NewRelay(o, func(context.Context, outbox.Event) error {
			at = append(at, time.Now())
			return errors.New("no")
		}, outbox.WithBackoff(time.Second, 10*time.Second))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, relay.Run(ctx))
		require.Len(t, at, outbox.DefaultMaxAttempts)
		for i, most := range []time.Duration{1, 2, 4, 8, 10, 10, 10, 10, 10} {
			pause := at[i+1].Sub(at[i])
			require.LessOrEqual(t, pause, most*time.Second)
			require.GreaterOrEqual(t, pause, most*time.Second/2)
		}
		require.NoError(t, s.Close())
	})
}

// TestRelayBlocked: a publisher that hangs keeps its aggregate waiting, however
// many events that has, and nobody else.
func TestRelayBlocked(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	const many = 6000 // more than the window
	var events []outbox.Event
	for n := 1; n <= many; n++ {
		events = append(events, event("stuck", n))
	}
	for n := 1; n <= 100; n++ {
		events = append(events, event("free", n))
	}
	appendEvents(t, s, o, events...)
	hang := make(chan struct{})
	free := make(chan struct{})
	p := newPublisher(many+100, func(e outbox.Event, _ int) error {
		switch e.ID {
		case "stuck-1":
			<-hang
		case "free-100":
			close(free)
		}
		return nil
	})
	r := start(t, o, p.publish, outbox.WithWorkers(2))
	<-free
	require.Empty(t, p.of("stuck"))
	close(hang)
	<-p.done
	r.stop(t)
	require.Equal(t, ids("stuck", 1, many), p.of("stuck"))
	require.Equal(t, ids("free", 1, 100), p.of("free"))
}

// TestRelayManyFailing: more aggregates than fit into the window are in back-off,
// each with several events, and one that is well is behind them all.
func TestRelayManyFailing(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	const failing, each = 1500, 3
	for n := 1; n <= each; n++ {
		var events []outbox.Event
		for a := range failing {
			events = append(events, event(fmt.Sprint("x", a), n))
		}
		appendEvents(t, s, o, events...)
	}
	appendEvents(t, s, o, event("well", 1))
	well := make(chan struct{})
	p := newPublisher(failing*each+1, func(e outbox.Event, attempt int) error {
		if e.AggregateID == "well" {
			close(well)
			return nil
		}
		select {
		case <-well:
			return nil
		default:
			return outbox.Unavailable(errors.New("no"))
		}
	})
	r := start(t, o, p.publish, outbox.WithBackoff(time.Second, time.Second),
		outbox.WithWindow(1000, 1<<20, 1<<16, 100))
	<-p.done
	r.stop(t)
	requireOrder(t, p.seen)
}

// requireOrder checks that each aggregate's events came in order, once.
func requireOrder(t *testing.T, seen []string) {
	t.Helper()
	last := make(map[string]int)
	for _, id := range seen {
		name, number, _ := strings.Cut(id, "-")
		var n int
		_, err := fmt.Sscan(number, &n)
		require.NoError(t, err)
		require.Equal(t, last[name]+1, n, id)
		last[name] = n
	}
}

// TestRelayAnyOrderOfFailures publishes a random mix with random failures while
// events come in.
func TestRelayAnyOrderOfFailures(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	const total, aggregates = 10_000, 40
	rnd := rand.New(rand.NewPCG(1, 2))
	var mix []outbox.Event
	numbers := make(map[string]int)
	for range total {
		name := fmt.Sprint("x", min(rnd.IntN(aggregates), rnd.IntN(aggregates))) // some have most of them
		numbers[name]++
		mix = append(mix, event(name, numbers[name]))
	}
	p := newPublisher(total, func(e outbox.Event, attempt int) error {
		if attempt == 1 && rand.IntN(20) == 0 {
			return errors.New("no")
		}
		return nil
	})
	r := start(t, o, p.publish, quick)
	for ; len(mix) > 0; mix = mix[1000:] {
		appendEvents(t, s, o, mix[:1000]...)
	}
	<-p.done
	r.stop(t)
	requireOrder(t, p.seen)
	require.Equal(t, uint64(total), stats(t, o).Published)
	require.Zero(t, stats(t, o).Depth)
}
