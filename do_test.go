package idem_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

type payment struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

var pay = payment{100, "EUR"}

// seed puts a record as another guard would have left it.
func seed(t testing.TB, store *idem.MemoryStore, state idem.State, lease, left time.Duration) idem.Record {
	t.Helper()
	fp, err := idem.NewFingerprint(store.Secret(), pay)
	require.NoError(t, err)
	now := store.Now()
	rec := idem.Record{
		Key: order, State: state, Fingerprint: fp, Kind: "func", Owner: "g:other#1", Attempt: 1,
		CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(left), Value: []byte(`"kept"`),
	}
	switch state {
	case idem.Processing:
		rec.LeaseUntil, rec.Value = now.Add(lease), nil
	case idem.Failed:
		rec.Error = "declined"
	case idem.Interrupted:
		rec.Error, rec.Value = "timeout", nil
	}
	rec, err = store.Create(t.Context(), rec)
	require.NoError(t, err)
	return rec
}

// TestDoByWhatItFinds is the table of what a call does: one row per record it
// may find, for a policy, with the same and with other content.
func TestDoByWhatItFinds(t *testing.T) {
	t.Parallel()
	const expired = -time.Second
	tests := []struct {
		name        string
		state       idem.State // 0: no record
		lease, left time.Duration
		opts        []idem.CallOption
		err         error // nil: an answer
		value       string
		attempt     int // 0: the function must not run
	}{
		{"nothing", 0, 0, 0, nil, nil, "ran", 1},
		{"expired", idem.Completed, 0, expired, nil, nil, "ran", 1},
		{"expired interruption", idem.Interrupted, 0, expired, nil, nil, "ran", 1},
		{"processing", idem.Processing, time.Minute, time.Hour, nil, idem.ErrInProgress, "", 0},
		{"processing, rerun", idem.Processing, time.Minute, time.Hour, []idem.CallOption{rerun()}, idem.ErrInProgress, "", 0},
		{"processing beyond its expiry", idem.Processing, time.Minute, expired, nil, idem.ErrInProgress, "", 0},
		{"lease over", idem.Processing, -1, time.Hour, nil, idem.ErrInterrupted, "", 0},
		{"lease over, rerun", idem.Processing, -1, time.Hour, []idem.CallOption{rerun()}, nil, "ran", 2},
		{"completed", idem.Completed, 0, time.Hour, nil, nil, "kept", 0},
		{"completed, rerun", idem.Completed, 0, time.Hour, []idem.CallOption{rerun()}, nil, "kept", 0},
		{"failed", idem.Failed, 0, time.Hour, nil, idem.ErrFailed, "kept", 0},
		{"failed, rerun", idem.Failed, 0, time.Hour, []idem.CallOption{rerun()}, idem.ErrFailed, "kept", 0},
		{"interrupted", idem.Interrupted, 0, time.Hour, nil, idem.ErrInterrupted, "", 0},
		{"interrupted, rerun", idem.Interrupted, 0, time.Hour, []idem.CallOption{rerun()}, nil, "ran", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := newHookStore()
			g := guardOn(t, store)
			var found idem.Record
			if tt.state != 0 {
				found = seed(t, store.MemoryStore, tt.state, tt.lease, tt.left)
			}
			fn := mustNotRun[string](t)
			if tt.attempt > 0 {
				fn = returns("ran", nil)
			}
			res, err := idem.Do(t.Context(), g, order, pay, fn, tt.opts...)
			require.Equal(t, tt.value, res.Value)
			if tt.err != nil {
				require.ErrorIs(t, err, tt.err)
			} else {
				require.NoError(t, err)
			}
			if tt.attempt > 0 {
				require.False(t, res.Replayed)
				require.Equal(t, tt.attempt, res.Record.Attempt)
				require.Greater(t, res.Record.Version, found.Version)
				require.Equal(t, idem.Completed, stored(t, store).State)
				return
			}
			require.Equal(t, tt.value != "", res.Replayed)
			require.Equal(t, found, res.Record)
			require.Equal(t, found, stored(t, store))
			require.Zero(t, store.writes.Load())
		})
		if tt.state == 0 || tt.left < 0 && tt.state != idem.Processing {
			continue
		}
		t.Run(tt.name+", other content", func(t *testing.T) {
			t.Parallel()
			store := newHookStore()
			found := seed(t, store.MemoryStore, tt.state, tt.lease, tt.left)
			_, err := idem.Do(t.Context(), guardOn(t, store), order, payment{101, "EUR"}, mustNotRun[string](t), tt.opts...)
			var mismatch *idem.MismatchError
			require.ErrorAs(t, err, &mismatch)
			require.ErrorIs(t, err, idem.ErrMismatch)
			require.NotErrorIs(t, err, tt.err)
			require.Equal(t, []string{"amount"}, mismatch.Parts)
			require.Equal(t, found, mismatch.Record)
			require.NotContains(t, err.Error(), "101")
			require.Zero(t, store.writes.Load())
		})
	}
}

func TestErrorsCarryTheRecord(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	g := guardOn(t, store)
	do := func() error {
		_, err := idem.Do(t.Context(), g, order, pay, mustNotRun[string](t))
		require.NoError(t, store.Delete(t.Context(), order, stored(t, store).Version))
		return err
	}
	want := seed(t, store, idem.Failed, 0, time.Hour)
	var failed *idem.FailedError
	require.ErrorAs(t, do(), &failed)
	require.Equal(t, want, failed.Record)
	require.EqualError(t, failed, `"charge/order-1" failed before: declined`)

	want = seed(t, store, idem.Interrupted, 0, time.Hour)
	var interrupted *idem.InterruptedError
	require.ErrorAs(t, do(), &interrupted)
	require.Equal(t, want, interrupted.Record)
	require.NoError(t, interrupted.Cause)

	want = seed(t, store, idem.Processing, time.Minute, time.Hour)
	var busy *idem.InProgressError
	require.ErrorAs(t, do(), &busy)
	require.Equal(t, want, busy.Record)
	require.GreaterOrEqual(t, busy.RetryAfter, time.Second)
	require.LessOrEqual(t, busy.RetryAfter, 30*time.Second)
}

// replayOf runs a function with the value and returns what a repeat gets.
func replayOf[T any](t *testing.T, v T) T {
	t.Helper()
	g := memoryGuard(t)
	first, err := idem.Do(t.Context(), g, order, nil, returns(v, nil))
	require.NoError(t, err)
	require.Equal(t, v, first.Value)
	require.False(t, first.Replayed)
	again, err := idem.Do(t.Context(), g, order, nil, mustNotRun[T](t))
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.Record, again.Record)
	decoded, err := idem.DecodeValue[T](again.Record)
	require.NoError(t, err)
	require.Equal(t, again.Value, decoded)
	return again.Value
}

func TestResultsKeepTheirType(t *testing.T) {
	t.Parallel()
	require.Equal(t, 42, replayOf(t, 42))
	require.Equal(t, "", replayOf(t, ""))
	require.Equal(t, pay, replayOf(t, pay))
	require.Equal(t, &pay, replayOf(t, &pay))
	require.Nil(t, replayOf(t, (*payment)(nil)))
	require.Equal(t, struct{}{}, replayOf(t, struct{}{}))
	require.Equal(t, []string{"a", "b"}, replayOf(t, []string{"a", "b"}))
	require.Equal(t, int64(1<<62+1), replayOf(t, int64(1<<62+1)))
	require.Nil(t, replayOf(t, any(nil)))

	require.Equal(t, []byte("raw \x00\xff"), replayOf(t, []byte("raw \x00\xff")))
	require.Nil(t, replayOf(t, []byte(nil)))
	empty := replayOf(t, []byte{})
	require.NotNil(t, empty, "nil and empty are told apart")
	require.Empty(t, empty)
}

func TestReplayIntoAnotherType(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	_, err := idem.Do(t.Context(), g, order, nil, returns("text", nil))
	require.NoError(t, err)
	res, err := idem.Do(t.Context(), g, order, nil, mustNotRun[int](t))
	require.ErrorIs(t, err, idem.ErrUndecodable)
	require.True(t, res.Replayed)
	require.Equal(t, idem.Completed, res.Record.State)
	raw, err := idem.Do(t.Context(), g, order, nil, mustNotRun[[]byte](t))
	require.NoError(t, err)
	require.Equal(t, []byte(`"text"`), raw.Value)
}

func TestValueThatIsNotKept(t *testing.T) {
	t.Parallel()
	t.Run("too large", func(t *testing.T) {
		t.Parallel()
		g := memoryGuard(t)
		large := make([]byte, idem.MaxValueBytes+1)
		first, err := idem.Do(t.Context(), g, order, nil, returns(large, nil))
		require.NoError(t, err)
		require.Len(t, first.Value, len(large))
		require.EqualValues(t, len(large), first.Record.ValueOmitted)
		again, err := idem.Do(t.Context(), g, order, nil, mustNotRun[[]byte](t))
		require.ErrorIs(t, err, idem.ErrValueNotKept)
		require.True(t, again.Replayed)
		require.Nil(t, again.Value)
		require.Equal(t, idem.Completed, again.Record.State)
	})
	t.Run("just fits", func(t *testing.T) {
		t.Parallel()
		require.Len(t, replayOf(t, make([]byte, idem.MaxValueBytes)), idem.MaxValueBytes)
	})
	t.Run("cannot be encoded", func(t *testing.T) {
		t.Parallel()
		g := memoryGuard(t)
		c, cause := make(chan int), errors.New("no JSON for this")
		first, err := idem.Do(t.Context(), g, order, nil, returns(c, nil))
		require.ErrorIs(t, err, idem.ErrValueNotKept)
		require.Equal(t, c, first.Value)
		require.Equal(t, idem.Completed, first.Record.State, "the work was done")
		_, err = idem.Do(t.Context(), g, order, nil, mustNotRun[chan int](t))
		require.ErrorIs(t, err, idem.ErrValueNotKept)

		_, err = idem.Do(t.Context(), memoryGuard(t), order, nil, returns(failingMarshaler{cause}, nil))
		require.ErrorIs(t, err, idem.ErrValueNotKept)
		require.ErrorIs(t, err, cause)
	})
}
