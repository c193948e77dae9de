package idem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestStateNames(t *testing.T) {
	t.Parallel()
	names := []string{"processing", "completed", "failed", "interrupted"}
	require.Len(t, idem.States(), len(names))
	for i, s := range idem.States() {
		require.Equal(t, names[i], s.String())
		back, err := idem.ParseState(names[i])
		require.NoError(t, err)
		require.Equal(t, s, back)
	}
	for _, name := range []string{"", "Completed", "done", "state(0)"} {
		_, err := idem.ParseState(name)
		require.ErrorContains(t, err, "unknown state", name)
	}
	require.Equal(t, "state(0)", idem.State(0).String())
	require.Equal(t, "state(5)", idem.State(5).String())
}

func TestRecordExpired(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name  string
		state idem.State
		lease time.Time
		now   time.Time
		want  bool
	}{
		{"before", idem.Completed, time.Time{}, at.Add(-time.Microsecond), false},
		{"exactly at its expiry", idem.Completed, time.Time{}, at, true},
		{"after", idem.Failed, time.Time{}, at.Add(time.Microsecond), true},
		{"a running lease outlives the expiry", idem.Processing, at.Add(time.Hour), at.Add(time.Minute), false},
		{"until the lease is over", idem.Processing, at.Add(time.Hour), at.Add(time.Hour), true},
		{"a lease counts only while processing", idem.Interrupted, at.Add(time.Hour), at, true},
	}
	for _, tt := range tests {
		rec := idem.Record{State: tt.state, LeaseUntil: tt.lease, ExpiresAt: at}
		require.Equal(t, tt.want, rec.Expired(tt.now), tt.name)
	}
}
