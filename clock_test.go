package idem

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStoreClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	high := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name string
		wall time.Time
		want time.Time
	}{
		{"as expected", high.Add(time.Minute), high.Add(time.Minute)},
		{"the same moment", high, high},
		{"set back an hour", high.Add(-time.Hour), high},
		{"no clock battery", time.Unix(0, 0), high},
		{"before 1970", time.Unix(-1e9, 0), high},
		{"ten years ahead", high.AddDate(10, 0, 0), high.AddDate(10, 0, 0)},
		{"another zone", high.Add(time.Minute).In(time.FixedZone("", -8*3600)), high.Add(time.Minute)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newStoreClock(tt.wall, storeState{clock: high}, time.Hour, false)
				require.Equal(t, tt.want, c.Now())
				time.Sleep(90 * time.Minute)
				require.Equal(t, tt.want.Add(90*time.Minute), c.Now())
				require.Equal(t, time.UTC, c.Now().Location())
			})
		})
	}
}

func TestGraceAfterDowntime(t *testing.T) {
	t.Parallel()
	const grace = 15 * time.Minute
	served := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	opened := served.Add(5 * time.Hour)
	tests := []struct {
		name    string
		expires time.Time
		up      time.Duration
		want    bool
	}{
		{"ran out while served", served.Add(-time.Microsecond), 0, true},
		{"ran out as service ended", served, 0, true},
		{"first moment of the downtime", served.Add(time.Microsecond), 0, false},
		{"in the middle", served.Add(time.Hour), 0, false},
		{"last moment of the downtime", opened, 0, false},
		{"until the grace is over", served.Add(time.Hour), grace - time.Microsecond, false},
		{"when it is over", served.Add(time.Hour), grace, true},
		{"last moment, when it is over", opened, grace, true},
		{"runs out after the opening: not yet", opened.Add(time.Minute), time.Minute - time.Microsecond, false},
		{"runs out after the opening: no grace", opened.Add(time.Minute), time.Minute, true},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			c := newStoreClock(opened, servedTo(served), grace, false)
			time.Sleep(tt.up)
			require.Equal(t, tt.want, c.expired(&Record{State: Completed, ExpiresAt: tt.expires}, c.Now()), tt.name)
		})
	}
	for name, c := range map[string]*storeClock{
		"never served": newStoreClock(opened, storeState{clock: served}, grace, false),
		"no grace":     newStoreClock(opened, servedTo(served), -1, false),
	} {
		require.True(t, c.expired(&Record{State: Completed, ExpiresAt: served.Add(time.Hour)}, c.Now()), name)
	}
}

// servedTo is the state that a service leaves which ended at t.
func servedTo(t time.Time) storeState { return storeState{clock: t, servedUntil: t} }

func TestDowntimesStayUntilTheGraceIsOver(t *testing.T) {
	t.Parallel()
	served := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	opened := served.Add(time.Hour)
	c := newStoreClock(opened, servedTo(served), time.Minute, false)
	down := []span{{served, opened}}
	require.Equal(t, down, c.pending(opened))
	require.Equal(t, down, c.pending(opened.Add(time.Minute-1)))
	require.Empty(t, c.pending(opened.Add(time.Minute)))

	// A second start within the grace: what ran out while the first run was up
	// stays expired, what ran out in either downtime does not.
	last := storeState{clock: opened.Add(30 * time.Second), servedUntil: opened.Add(30 * time.Second), downtimes: down}
	again := opened.Add(time.Hour)
	c = newStoreClock(again, last, time.Minute, false)
	for at, want := range map[time.Time]bool{
		served:                       true,
		served.Add(time.Minute):      false,
		opened:                       false,
		opened.Add(time.Second):      true,
		opened.Add(30 * time.Second): true,
		opened.Add(40 * time.Minute): false,
		again:                        false,
		again.Add(time.Second):       false, // not yet
	} {
		require.Equal(t, want, c.expired(&Record{State: Completed, ExpiresAt: at}, again), at)
	}
	require.Equal(t, []span{{time.Time{}, served}, {opened, last.servedUntil}, {again, again.Add(time.Second)}},
		c.removable(again.Add(time.Second)))
	require.Equal(t, []span{{to: again.Add(time.Minute)}}, c.removable(again.Add(time.Minute)))

	visitor := newStoreClock(again, last, time.Minute, true)
	require.True(t, visitor.expired(&Record{State: Completed, ExpiresAt: again}, again), "a visitor goes by the clock")
	require.Equal(t, []span{{time.Time{}, served}, {opened, last.servedUntil}}, visitor.removable(again.Add(time.Hour)),
		"but leaves downtimes to the service")

	first := newStoreClock(opened, storeState{clock: opened}, time.Minute, false)
	require.Empty(t, first.pending(opened), "a new store has no downtime behind it")
}

func TestRestartLoopIsBounded(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	state := servedTo(at)
	for range 100 {
		at = at.Add(time.Minute)
		c := newStoreClock(at, state, time.Hour, false)
		state = storeState{clock: at, servedUntil: at, downtimes: c.pending(at)}
	}
	require.Len(t, state.downtimes, maxDowntimes)
	decoded, err := decodeStoreState(state.encode())
	require.NoError(t, err)
	require.Equal(t, state, decoded)
}

func TestStoreClockDoesNotOverflow(t *testing.T) {
	t.Parallel()
	last := fromMicros(math.MaxInt64 / 2)
	c := newStoreClock(time.Unix(0, 0), storeState{clock: last, servedUntil: time.Unix(0, 0)}, math.MaxInt64, false)
	require.False(t, c.Now().Before(last))
	require.True(t, c.graceUntil.After(last))
	require.False(t, c.expired(&Record{State: Completed, ExpiresAt: time.Unix(1, 0)}, c.Now()))
	require.Equal(t, last, fromMicros(toMicros(last)))
}
