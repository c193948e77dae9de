package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/outbox"
)

// TestAppendCommitsWithTheWork: no event of a transaction that fails.
func TestAppendCommitsWithTheWork(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	failure := errors.New("no")
	require.ErrorIs(t, s.Update(t.Context(), func(tx *idem.Tx) error {
		return errors.Join(o.Append(tx, event("a", 1)), failure)
	}), failure)
	guard, err := idem.New(s)
	require.NoError(t, err)
	key := idem.Key{Scope: "order", ID: "o-1"}
	for range 2 { // the repeat is answered and appends nothing
		_, err = idem.DoTx(t.Context(), guard, key, nil, func(_ context.Context, tx *idem.Tx) (string, error) {
			return "placed", o.Append(tx, event("a", 2))
		})
		require.NoError(t, err)
	}
	entries, err := o.List(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "a-2", entries[0].Event.ID)
	require.Equal(t, uint64(1), entries[0].Number)
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	long := strings.Repeat("x", outbox.MaxNameBytes+1)
	headers := make(map[string]string)
	for i := range outbox.MaxHeaders + 1 {
		headers[fmt.Sprint(i)] = ""
	}
	tests := []struct {
		name  string
		spoil func(*outbox.Event)
		says  string
	}{
		{"long id", func(e *outbox.Event) { e.ID = long }, "id has 256 bytes"},
		{"id with a zero byte", func(e *outbox.Event) { e.ID = "a\x00" }, "control"},
		{"no aggregate type", func(e *outbox.Event) { e.AggregateType = "" }, "aggregate type is empty"},
		{"no aggregate id", func(e *outbox.Event) { e.AggregateID = "" }, "aggregate id is empty"},
		{"no type", func(e *outbox.Event) { e.Type = "" }, "type is empty"},
		{"type that is no text", func(e *outbox.Event) { e.Type = "\xff" }, "UTF-8"},
		{"large payload", func(e *outbox.Event) { e.Payload = make([]byte, outbox.MaxPayloadBytes+1) }, "1048577 bytes"},
		{"many headers", func(e *outbox.Event) { e.Headers = headers }, "65 headers"},
		{"header without a name", func(e *outbox.Event) { e.Headers = map[string]string{"": "1"} }, "name of header"},
		{"long header", func(e *outbox.Event) { e.Headers = map[string]string{"a": strings.Repeat("x", 4097)} }, `header "a"`},
		{"header that is no text", func(e *outbox.Event) { e.Headers = map[string]string{"a": "\xff"} }, `header "a"`},
		{"long trace id", func(e *outbox.Event) { e.TraceID = long }, "trace id"},
		{"early", func(e *outbox.Event) { e.CreatedAt = time.Unix(-1, 0) }, "1970"},
		{"late", func(e *outbox.Event) { e.CreatedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "9999"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := event("a", 1)
			tt.spoil(&bad)
			err := s.Update(t.Context(), func(tx *idem.Tx) error { return o.Append(tx, event("a", 1), bad) })
			require.ErrorIs(t, err, outbox.ErrInvalidEvent)
			require.ErrorContains(t, err, tt.says)
			require.Zero(t, stats(t, o).Depth)
		})
	}
}

func TestAppendLargest(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	name := strings.Repeat("x", outbox.MaxNameBytes)
	e := outbox.Event{
		ID: name, AggregateType: name, AggregateID: name, Type: name, Payload: make([]byte, outbox.MaxPayloadBytes),
		Headers: make(map[string]string), TraceID: strings.Repeat("t", outbox.MaxTraceIDBytes),
		CreatedAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	for i := range outbox.MaxHeaders {
		e.Headers[fmt.Sprint(i)] = strings.Repeat("v", outbox.MaxHeaderValueBytes)
	}
	appendEvents(t, s, o, e)
	entries, err := o.List(t.Context(), 0, 2)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, e, entries[0].Event)
}

// TestEventSurvives stores any valid event as it is.
func TestEventSurvives(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	var after uint64
	name := rapid.StringMatching(`[^\pC\x7f]{1,60}`)
	rapid.Check(t, func(rt *rapid.T) {
		e := outbox.Event{
			ID: name.Draw(rt, "id"), AggregateType: name.Draw(rt, "aggregate type"), AggregateID: name.Draw(rt, "aggregate id"),
			Type: name.Draw(rt, "type"), Payload: rapid.SliceOf(rapid.Byte()).Draw(rt, "payload"),
			TraceID:   rapid.StringN(0, 30, 128).Draw(rt, "trace id"),
			CreatedAt: time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(rt, "created")).UTC(),
		}
		if h := rapid.MapOfN(name, rapid.StringN(0, -1, 4096), 0, 5).Draw(rt, "headers"); len(h) > 0 {
			e.Headers = maps.Clone(h)
		}
		appendEvents(t, s, o, e)
		entries, err := o.List(t.Context(), after, 2)
		require.NoError(rt, err)
		require.Len(rt, entries, 1)
		require.Equal(rt, e, entries[0].Event)
		after = entries[0].Number
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	_, err := outbox.New(nil)
	require.ErrorIs(t, err, outbox.ErrInvalidConfig)
	for _, name := range []string{"", "idem.records", strings.Repeat("x", 201)} {
		_, err := outbox.New(s, outbox.WithBucket(name))
		require.ErrorIs(t, err, outbox.ErrInvalidConfig)
	}
	publish := func(context.Context, outbox.Event) error { return nil }
	_, err = outbox.NewRelay(nil, publish)
	require.ErrorIs(t, err, outbox.ErrInvalidConfig)
	_, err = outbox.NewRelay(o, nil)
	require.ErrorIs(t, err, outbox.ErrInvalidConfig)
	for name, opt := range map[string]outbox.RelayOption{
		"no workers":         outbox.WithWorkers(0),
		"many workers":       outbox.WithWorkers(513),
		"no back-off":        outbox.WithBackoff(0, time.Second),
		"back-off backwards": outbox.WithBackoff(2*time.Second, time.Second),
		"negative attempts":  outbox.WithMaxAttempts(-1),
		"negative grace":     outbox.WithGrace(-1),
	} {
		_, err := outbox.NewRelay(o, publish, opt)
		require.ErrorIs(t, err, outbox.ErrInvalidConfig, name)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	for n := 1; n <= 25; n++ {
		appendEvents(t, s, o, event("a", n))
	}
	var got []string
	for after := uint64(0); ; {
		entries, err := o.List(t.Context(), after, 10)
		require.NoError(t, err)
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			got = append(got, e.Event.ID)
			after = e.Number
		}
	}
	require.Equal(t, ids("a", 1, 25), got)
	for _, limit := range []int{0, -1} {
		entries, err := o.List(t.Context(), 0, limit)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
	entries, err := o.List(t.Context(), math.MaxUint64, 1)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestStats(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	require.Equal(t, outbox.Stats{}, stats(t, o))
	old := event("a", 1)
	old.CreatedAt = s.Now().Add(-time.Hour)
	appendEvents(t, s, o, old)
	for n := 2; n <= 200; n++ { // the end is looked for again and again
		if appendEvents(t, s, o, event("a", n)); n%7 == 0 {
			require.Equal(t, uint64(n), stats(t, o).Depth)
		}
	}
	fresh, err := outbox.New(s)
	require.NoError(t, err)
	got := stats(t, fresh)
	require.Equal(t, uint64(200), got.Depth)
	require.InDelta(t, time.Hour, got.Lag, float64(time.Minute))
	require.WithinDuration(t, old.CreatedAt, got.Oldest, time.Microsecond)
}

func TestRetryAndDrop(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	twin := event("b", 2)
	twin.ID = "a-1" // two of one id: neither gets lost
	appendEvents(t, s, o, event("a", 1), twin, event("c", 1))
	r := start(t, o, func(context.Context, outbox.Event) error { return errors.New("no") }, quick, outbox.WithMaxAttempts(1))
	require.Eventually(t, func() bool { return stats(t, o).Parked == 3 }, time.Minute, time.Millisecond)
	r.stop(t)
	for _, id := range []string{"", "a", "a-", "a-1\x00", "none", strings.Repeat("x", 300)} {
		require.ErrorIs(t, o.Retry(t.Context(), id), outbox.ErrNotParked, id)
		require.ErrorIs(t, o.Drop(t.Context(), id), outbox.ErrNotParked, id)
	}
	require.NoError(t, o.Drop(t.Context(), "c-1"))
	require.ErrorIs(t, o.Drop(t.Context(), "c-1"), outbox.ErrNotParked)
	require.NoError(t, o.Retry(t.Context(), "a-1"))
	require.Equal(t, outbox.Stats{Depth: 2, Failed: 3}, withoutAge(stats(t, o)))
	entries, err := o.List(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, event("a", 1).Payload, entries[0].Event.Payload)
	require.Equal(t, twin.Payload, entries[1].Event.Payload)
	require.Zero(t, entries[0].Attempts)
}

// TestForeignPairs: what is in the bucket and not by Append does not stop the relay.
func TestForeignPairs(t *testing.T) {
	t.Parallel()
	s, o := newOutbox(t)
	appendEvents(t, s, o, event("a", 1))
	require.NoError(t, s.Update(t.Context(), func(tx *idem.Tx) error {
		b := tx.Bucket(outbox.DefaultBucket)
		for i := range 600 { // more than is read at a time
			if err := b.Put(fmt.Appendf(nil, "\x00\x00%d", i), []byte("x")); err != nil {
				return err
			}
		}
		return errors.Join(b.Append([]byte("no JSON")), b.Append([]byte(`{"id":"x"}`)))
	}))
	appendEvents(t, s, o, event("a", 2))
	p := newPublisher(2, nil)
	r := start(t, o, p.publish)
	<-p.done
	r.stop(t)
	require.Equal(t, ids("a", 1, 2), p.seen)
	var parked []string
	for e, err := range o.Parked(t.Context()) {
		require.NoError(t, err)
		parked = append(parked, fmt.Sprintf("%s %s", e.Event.ID, e.Event.Payload))
		require.NotEmpty(t, e.Error)
	}
	require.Equal(t, []string{"undecodable-2 no JSON", `undecodable-3 {"id":"x"}`}, parked)
	require.ErrorIs(t, o.Retry(t.Context(), "undecodable-2"), outbox.ErrInvalidEvent)
	require.NoError(t, o.Drop(t.Context(), "undecodable-2"))
	require.Equal(t, outbox.Stats{Published: 2, Parked: 1}, stats(t, o))
}
