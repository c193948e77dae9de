package outbox_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/outbox"
)

// backlog appends events of many aggregates, some of which have more than others.
func backlog(t testing.TB, o *outbox.Outbox, appendAll func(...outbox.Event), total int) {
	t.Helper()
	const each = 10_000
	for n := 0; n < total; n += each {
		events := make([]outbox.Event, 0, each)
		for i := n; i < n+each; i++ {
			events = append(events, outbox.Event{
				AggregateType: "order", AggregateID: fmt.Sprint(i % 50_021), Type: "OrderPlaced",
				Payload: fmt.Appendf(nil, `{"order":%d,"amount":1200,"currency":"EUR","customer":"c-%d"}`, i, i/3),
			})
		}
		appendAll(events...)
	}
}

// heap is the memory in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestRelayBacklog publishes a large backlog with little memory. It runs alone: what
// other tests use would be counted.
func TestRelayBacklog(t *testing.T) {
	total := 1_000_000
	switch {
	case raceEnabled:
		total = 20_000
	case testing.Short():
		total = 50_000
	}
	s, o := newOutbox(t)
	backlog(t, o, func(events ...outbox.Event) { appendEvents(t, s, o, events...) }, total)
	began := time.Now()
	depth := stats(t, o)
	require.Equal(t, uint64(total), depth.Depth)
	t.Logf("stats took %s", time.Since(began))

	before := heap()
	var published atomic.Int64
	half, done := make(chan struct{}), make(chan struct{})
	began = time.Now()
	r := start(t, o, func(context.Context, outbox.Event) error {
		switch published.Add(1) {
		case int64(total / 2):
			close(half)
		case int64(total):
			close(done)
		}
		return nil
	})
	<-half
	during := heap()
	<-done
	r.stop(t)
	rate := float64(total) / time.Since(began).Seconds()
	t.Logf("%d events, %.0f per second; heap %d KiB before, %d KiB during", total, rate, before>>10, during>>10)
	require.Less(t, int64(during)-int64(before), int64(48<<20))
	require.Zero(t, stats(t, o).Depth)
	if !raceEnabled {
		require.Greater(t, rate, 2000.0) // an order of magnitude below what an idle machine does
	}
}

// BenchmarkRelay publishes a backlog; an operation is an event.
func BenchmarkRelay(b *testing.B) {
	s, o := newOutbox(b)
	var left atomic.Int64
	done := make(chan struct{})
	total := max(10_000, (b.N+9999)/10_000*10_000)
	backlog(b, o, func(events ...outbox.Event) { appendEvents(b, s, o, events...) }, total)
	left.Store(int64(total))
	b.ReportAllocs()
	b.ResetTimer()
	r := start(b, o, func(context.Context, outbox.Event) error {
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	})
	<-done
	r.stop(b)
	b.StopTimer()
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkRelayOneAggregate is the other end: nothing can be done at a time.
func BenchmarkRelayOneAggregate(b *testing.B) {
	s, o := newOutbox(b)
	var left atomic.Int64
	done := make(chan struct{})
	total := max(10_000, (b.N+9999)/10_000*10_000)
	for n := 0; n < total; n += 10_000 {
		events := make([]outbox.Event, 10_000)
		for i := range events {
			events[i] = event("a", n+i)
		}
		appendEvents(b, s, o, events...)
	}
	left.Store(int64(total))
	b.ResetTimer()
	r := start(b, o, func(context.Context, outbox.Event) error {
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	})
	<-done
	r.stop(b)
	b.StopTimer()
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "events/s")
}
