package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// TestHowARunEnds: one row per way a function can end, with the state it leaves
// and what a repeat gets.
func TestHowARunEnds(t *testing.T) {
	t.Parallel()
	plain := errors.New("no such customer")
	always := func(o idem.Outcome) []idem.CallOption {
		return []idem.CallOption{idem.WithClassifier(func(error) idem.Outcome { return o })}
	}
	tests := []struct {
		name   string
		err    error
		opts   []idem.CallOption
		state  idem.State // 0: the key is released
		repeat error
	}{
		{"success", nil, nil, idem.Completed, nil},
		{"plain error", plain, nil, 0, nil},
		{"permanent", idem.Permanent(plain), nil, idem.Failed, idem.ErrFailed},
		{"permanent, wrapped", fmt.Errorf("charge: %w", idem.Permanent(plain)), nil, idem.Failed, idem.ErrFailed},
		{"unknown", idem.Unknown(plain), nil, idem.Interrupted, idem.ErrInterrupted},
		{"context cancelled", context.Canceled, nil, idem.Interrupted, idem.ErrInterrupted},
		{"context deadline", context.DeadlineExceeded, nil, idem.Interrupted, idem.ErrInterrupted},
		{"network timeout", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, nil, idem.Interrupted, idem.ErrInterrupted},
		{"own classifier: unknown", plain, always(idem.OutcomeUnknown), idem.Interrupted, idem.ErrInterrupted},
		{"own classifier: permanent", plain, always(idem.OutcomePermanent), idem.Failed, idem.ErrFailed},
		{"own classifier: nothing", context.Canceled, always(idem.OutcomeNothing), 0, nil},
		{"own classifier: no outcome", plain, always(0), idem.Interrupted, idem.ErrInterrupted},
		{"success does not reach the classifier", nil, always(idem.OutcomeUnknown), idem.Completed, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := memoryGuard(t)
			first, err := idem.Do(t.Context(), g, order, pay, returns("partial", tt.err), tt.opts...)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, "partial", first.Value)
			require.False(t, first.Replayed)
			if tt.repeat == idem.ErrInterrupted {
				require.ErrorIs(t, err, idem.ErrInterrupted, "the caller hears that the outcome is open")
			}

			rec, getErr := g.Store().Get(t.Context(), order)
			if tt.state == 0 {
				require.ErrorIs(t, getErr, idem.ErrNotFound)
				again, err := idem.Do(t.Context(), g, order, pay, returns("second", nil), tt.opts...)
				require.NoError(t, err)
				require.Equal(t, "second", again.Value)
				require.Equal(t, 1, again.Record.Attempt)
				require.Greater(t, again.Record.Version, first.Record.Version)
				return
			}
			require.NoError(t, getErr)
			require.Equal(t, tt.state, rec.State)
			require.Equal(t, first.Record, rec)
			require.Zero(t, rec.LeaseUntil)
			again, err := idem.Do(t.Context(), g, order, pay, mustNotRun[string](t), tt.opts...)
			require.ErrorIs(t, err, tt.repeat)
			if tt.repeat == nil {
				require.NoError(t, err)
			} else {
				require.Equal(t, tt.err.Error(), rec.Error)
			}
			if tt.state == idem.Interrupted {
				require.Empty(t, again.Value)
			} else {
				require.Equal(t, "partial", again.Value, "a failure is replayed with its value")
				require.True(t, again.Replayed)
			}
		})
	}
}

func TestPanicIsRecordedAndGoesOn(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	boom := &struct{ text string }{"boom"}
	require.PanicsWithValue(t, boom, func() {
		_, _ = idem.Do(t.Context(), g, order, pay, func(context.Context, *idem.Attempt) (int, error) { panic(boom) })
	})
	rec := stored(t, g.Store())
	require.Equal(t, idem.Interrupted, rec.State)
	require.Contains(t, rec.Error, "panic: ")
	require.Contains(t, rec.Error, "boom")
	_, err := idem.Do(t.Context(), g, order, pay, mustNotRun[int](t))
	require.ErrorIs(t, err, idem.ErrInterrupted)
}

type panickingResult struct{}

func (panickingResult) MarshalJSON() ([]byte, error) { panic("cannot encode") }

func TestPanicOfAResultDoesNotKeepTheKey(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	require.PanicsWithValue(t, "cannot encode", func() {
		_, _ = idem.Do(t.Context(), g, order, pay, returns(panickingResult{}, nil))
	})
	require.Equal(t, idem.Interrupted, stored(t, g.Store()).State)
}

func TestGoexitIsRecorded(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = idem.Do(context.Background(), g, order, pay, func(context.Context, *idem.Attempt) (int, error) {
			runtime.Goexit()
			return 0, nil
		})
		t.Error("Do returned")
	}()
	<-ended
	rec := stored(t, g.Store())
	require.Equal(t, idem.Interrupted, rec.State)
	require.Equal(t, "the function ended its goroutine", rec.Error)
}

func TestLongErrorIsCutAtARune(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	_, err := idem.Do(t.Context(), g, order, nil, returns(0, idem.Permanent(errors.New("x"+strings.Repeat("é", 4000)))))
	require.Error(t, err)
	require.Equal(t, "x"+strings.Repeat("é", 2047), stored(t, g.Store()).Error)
}

func TestAttempt(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t, rerun())
	var versions []uint64
	var children []string
	call := func(number int, end error) {
		_, err := idem.Do(t.Context(), g, order, pay, func(ctx context.Context, a *idem.Attempt) (int, error) {
			same, ok := idem.AttemptFrom(ctx)
			require.True(t, ok)
			require.Same(t, a, same)
			require.Equal(t, order, a.Key())
			require.Equal(t, number, a.Number())
			require.Equal(t, "trace-1", a.TraceID())
			require.Equal(t, stored(t, g.Store()).Version, a.Version())
			versions = append(versions, a.Version())
			children = append(children, a.ChildKey("provider"))
			require.NotEqual(t, a.ChildKey("provider"), a.ChildKey("mail"))
			return 0, end
		}, idem.WithTraceID("trace-1"))
		require.ErrorIs(t, err, end)
	}
	call(1, errors.New("nothing happened"))
	call(1, idem.Unknown(errDisk))
	call(2, idem.Unknown(errDisk))
	call(3, nil)
	require.IsIncreasing(t, versions)
	for _, child := range children {
		require.Equal(t, "6bab415c6b83ec1af0c1241e709d2c07", child, "other systems remember it")
	}
	_, ok := idem.AttemptFrom(t.Context())
	require.False(t, ok)
}

func TestChildKeysDoNotCollide(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	seen := make(map[string]string)
	for _, key := range []idem.Key{{Scope: "s", ID: "a"}, {Scope: "s", ID: "ab"}, {Scope: "sa", ID: "a"}, {Scope: "s", ID: "a/b"}} {
		_, err := idem.Do(t.Context(), g, key, nil, func(_ context.Context, a *idem.Attempt) (int, error) {
			for _, name := range []string{"", "a", "b", "bc", "c", "/b"} {
				child, from := a.ChildKey(name), key.String()+" "+name
				require.Regexp(t, "^[0-9a-f]{32}$", child)
				require.Empty(t, seen[child], from)
				seen[child] = from
			}
			return 0, nil
		})
		require.NoError(t, err)
	}
}

func TestFunc(t *testing.T) {
	t.Parallel()
	g := memoryGuard(t)
	runs := 0
	charge := idem.Func(g, "charge", func(p payment) string { return p.Currency },
		func(ctx context.Context, p payment) (string, error) {
			a, ok := idem.AttemptFrom(ctx)
			require.True(t, ok)
			runs++
			return fmt.Sprint(a.Key(), " ", p.Amount), nil
		}, idem.WithKind("charge"))
	for range 3 {
		got, err := charge(t.Context(), pay)
		require.NoError(t, err)
		require.Equal(t, "charge/EUR 100", got)
	}
	require.Equal(t, 1, runs)
	_, err := charge(t.Context(), payment{200, "EUR"})
	require.ErrorIs(t, err, idem.ErrMismatch)
	_, err = charge(t.Context(), payment{})
	require.ErrorIs(t, err, idem.ErrInvalidKey)
	rec, err := g.Store().Get(t.Context(), idem.Key{Scope: "charge", ID: "EUR"})
	require.NoError(t, err)
	require.Equal(t, "charge", rec.Kind)
}
