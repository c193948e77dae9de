package idem

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTxOverHeldKey: the record under a key that a DoTx holds cannot be replaced or
// removed, by no other transaction either.
func TestTxOverHeldKey(t *testing.T) {
	for _, del := range []bool{false, true} {
		s, _ := edgeStore(t, BoltConfig{})
		g, err := New(s, WithPolicy(Policy{Retention: time.Hour, Lease: time.Minute, OnInterrupted: Rerun()}))
		require.NoError(t, err)
		k := Key{"a", "b"}
		_, err = Do(t.Context(), g, k, nil, func(context.Context, *Attempt) (int, error) { return 0, Unknown(errors.New("x")) })
		require.ErrorIs(t, err, ErrInterrupted)
		before, err := s.Get(t.Context(), k)
		require.NoError(t, err)
		require.Equal(t, Interrupted, before.State)
		oops := errors.New("oops")
		_, err = DoTx(t.Context(), g, k, nil, func(context.Context, *Tx) (int, error) {
			err := s.Update(t.Context(), func(tx *Tx) error {
				rec, err := tx.Records().Get(t.Context(), k)
				require.NoError(t, err)
				if del {
					return tx.Records().Delete(t.Context(), k, rec.Version)
				}
				rec.Note = "changed"
				got, err := tx.Records().Swap(t.Context(), rec.Version, rec)
				t.Logf("swap: version %d, %v", got.Version, err)
				return err
			})
			t.Logf("update: %v", err)
			outside, errOut := s.Swap(t.Context(), heldVersion, before)
			t.Logf("outside: %v %v", outside.Version, errOut)
			return 0, oops
		})
		require.ErrorIs(t, err, oops)
		after, err := s.Get(t.Context(), k)
		if !(err == nil && after.Version == before.Version) {
			t.Errorf("delete=%v: the interrupted record is gone: %v", del, err)
		}
		require.NoError(t, s.Close())
	}
}

// TestHeldKeyDoesNotRunOut: however long the function takes, its key is held.
func TestHeldKeyDoesNotRunOut(t *testing.T) {
	t.Parallel()
	var h holds
	rec := testRecord("k", "v")
	rec.State, rec.LeaseUntil, rec.ExpiresAt = Processing, rec.StartedAt.Add(time.Second), rec.StartedAt.Add(2*time.Second)
	_, ok := h.take(rec, 0)
	require.True(t, ok)
	held, ok := h.covering(rec.Key, 0)
	require.True(t, ok)
	require.True(t, held.LeaseUntil.After(rec.StartedAt.AddDate(50, 0, 0)))
	_, ok = h.covering(rec.Key, 7)
	require.False(t, ok, "a claim that was there before wins")
	h.release(rec.Key)
	_, ok = h.covering(rec.Key, 0)
	require.False(t, ok)
}
