package idem

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFull runs a store into each of its own limits. New keys are ErrFull and do
// not run; repeats, running attempts, deletes and the janitor go on, and what
// they free can be used again.
func TestFull(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		config BoltConfig
	}{
		{"records", BoltConfig{MaxRecords: 40}},
		{"bytes", BoltConfig{MaxBytes: 200 << 10}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			s := openFault(t, path, tt.config)
			g, err := New(s)
			require.NoError(t, err)
			running, err := s.Create(t.Context(), faultRecord("running", Processing, nil, s.Owner()))
			require.NoError(t, err)
			expired := completed("expired", faultValue(0, 30_000))
			expired.ExpiresAt = expired.CreatedAt
			_, err = s.Create(t.Context(), expired)
			require.NoError(t, err)
			full := fillToLimit(t, s)
			require.Greater(t, full, 10)

			_, err = Do(t.Context(), g, faultKey("new"), nil, func(context.Context, *Attempt) (int, error) {
				t.Error("it ran although its claim was refused")
				return 0, nil
			})
			require.ErrorIs(t, err, ErrFull)
			res, err := Do(t.Context(), g, faultKey("k0"), nil, func(context.Context, *Attempt) ([]byte, error) {
				t.Error("a repeat ran")
				return nil, nil
			})
			require.NoError(t, err)
			require.Equal(t, faultValue(0, 3000), string(res.Value))
			rec, err := s.Create(t.Context(), completed("k0", "other"))
			require.ErrorIs(t, err, ErrConflict, "an existing key is a conflict, full or not")
			require.Equal(t, faultKey("k0"), rec.Key)
			_, err = s.Swap(t.Context(), running.Version, completed("running", faultValue(1, 3000)))
			require.NoError(t, err, "an attempt that was let in may finish")

			n, err := s.Expire(t.Context(), 10)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			for i := range full / 2 {
				rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("k%d", i)))
				require.NoError(t, err)
				require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
			}
			for i := range full / 4 {
				_, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", i), faultValue(i, 3000)))
				require.NoError(t, err, "freed space must be usable")
			}
			require.NoError(t, s.Close())
			requireSound(t, path)
		})
	}
}

// fillToLimit creates k0, k1, … with values of 3,000 bytes until ErrFull.
func fillToLimit(t *testing.T, s *BoltStore) (records int) {
	t.Helper()
	for ; ; records++ {
		rec, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", records), faultValue(records, 3000)))
		if err != nil {
			require.ErrorIs(t, err, ErrFull)
			require.ErrorContains(t, err, "the limit is")
			require.Equal(t, Record{}, rec)
			return records
		}
		require.Less(t, records, 1000)
	}
}

// TestFullAfterReopen: a limit counts what was there before.
func TestFullAfterReopen(t *testing.T) {
	t.Parallel()
	path := faultFile(t, 5, 10)
	s := openFault(t, path, BoltConfig{MaxRecords: 5})
	_, err := s.Create(t.Context(), completed("new", ""))
	require.ErrorIs(t, err, ErrFull)
	rec, err := s.Get(t.Context(), faultKey("k3"))
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
	_, err = s.Create(t.Context(), completed("new", ""))
	require.NoError(t, err)
	_, err = s.Create(t.Context(), completed("newer", ""))
	require.ErrorIs(t, err, ErrFull)
}

// TestFullBatch holds the writer in one commit while more creators queue than
// there is room for: exactly the room is given out, within one batch too.
func TestFullBatch(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	config := aroundCommits(func(commit func() error) error {
		<-gate
		return commit()
	})
	config.MaxRecords = 20
	s := openFault(t, faultPath(t), config)
	errs := make(chan error)
	for i := range 50 {
		go func() {
			_, err := s.Create(t.Context(), completed(fmt.Sprint(i), ""))
			errs <- err
		}()
	}
	close(gate)
	taken := 0
	for range 50 {
		if err := <-errs; err != nil {
			require.ErrorIs(t, err, ErrFull)
		} else {
			taken++
		}
	}
	require.Equal(t, 20, taken)
}
