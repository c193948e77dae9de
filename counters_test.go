package idem_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestCounters(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	require.Zero(t, g.Counters().HitRate(), "no call, no share")
	do := func(key idem.Key, input any, end error) {
		_, _ = idem.Do(t.Context(), g, key, input, returns(1, end))
	}
	id := func(s string) idem.Key { return idem.Key{Scope: "s", ID: s} }
	do(id("done"), nil, nil)
	for range 5 {
		do(id("done"), nil, nil)
	}
	do(id("failed"), nil, idem.Permanent(errDisk))
	do(id("failed"), nil, nil)
	do(id("released"), nil, errDisk)
	do(id("open"), nil, idem.Unknown(errDisk))
	do(id("open"), nil, nil)
	do(id(""), nil, nil)
	do(id(""), nil, nil)
	do(idem.Key{ID: "x"}, nil, nil)
	do(id("\x00"), nil, nil)
	do(id("done"), "other", nil)

	got := g.Counters()
	require.Len(t, got.Suspects, 1)
	got.Suspects = nil
	require.Equal(t, idem.Counters{
		Executed: 1, Replayed: 6, Failed: 1, Released: 1, Interrupted: 2, Rejected: 4, Mismatch: 1,
		RejectedBy: map[idem.RejectReason]uint64{idem.RejectMissing: 2, idem.RejectNoScope: 1, idem.RejectCharset: 1},
	}, got)
	require.InDelta(t, 6.0/9, got.HitRate(), 1e-9)

	got.RejectedBy[idem.RejectMissing] = 100
	require.EqualValues(t, 2, g.Counters().RejectedBy[idem.RejectMissing], "a snapshot is the caller's own")
}

func TestSuspects(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	mismatch := func(id string, calls, contents int) {
		key := idem.Key{Scope: "s", ID: id}
		_, err := idem.Do(t.Context(), g, key, "first", returns(1, nil))
		require.NoError(t, err)
		for i := range calls {
			_, err := idem.Do(t.Context(), g, key, i%contents, mustNotRun[int](t))
			require.ErrorIs(t, err, idem.ErrMismatch)
		}
	}
	require.Empty(t, g.Counters().Suspects)
	mismatch("one-key-for-all", 1000, 1000)
	mismatch("a-few", 20, 3)
	mismatch("retries-wrongly", 50, 1)
	mismatch("b-once", 1, 1)
	mismatch("a-once", 1, 1)

	got := g.Counters().Suspects
	var ids []string
	for _, s := range got {
		ids = append(ids, s.Key.ID)
	}
	require.Equal(t, []string{"one-key-for-all", "a-few", "retries-wrongly", "a-once", "b-once"}, ids)
	require.EqualValues(t, 1000, got[0].Mismatches)
	require.Greater(t, got[0].Distinct, 150)
	require.Less(t, got[0].Distinct, 300)
	require.EqualValues(t, 20, got[1].Mismatches)
	require.InDelta(t, 3, got[1].Distinct, 1)
	require.EqualValues(t, 50, got[2].Mismatches)
	require.Equal(t, 1, got[2].Distinct)

	for i := range 500 { // more keys than are tracked
		mismatch(fmt.Sprint("many-", i), 1, 1)
	}
	require.Len(t, g.Counters().Suspects, 10)
}
