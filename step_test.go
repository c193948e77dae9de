package idem_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// work takes three steps and fails, panics or goes on after so many of them.
type work struct {
	t     *testing.T
	taken []string // steps whose function ran
	after int
	end   func() error
}

func (w *work) step(ctx context.Context, a *idem.Attempt, name string) (string, error) {
	return idem.Step(ctx, a, name, func(context.Context) (string, error) {
		w.taken = append(w.taken, name)
		return name + " done", nil
	})
}

func (w *work) do(ctx context.Context, a *idem.Attempt) (string, error) {
	var got []string
	for i, name := range []string{"reserve", "charge", "ship"} {
		if i == w.after && w.end != nil {
			if err := w.end(); err != nil {
				return "", err
			}
		}
		result, err := w.step(ctx, a, name)
		if err != nil {
			return "", err
		}
		require.Equal(w.t, name+" done", result)
		got = append(got, result)
	}
	return strings.Join(got, ", "), nil
}

var stepKey = idem.Key{Scope: "order", ID: "1"}

func TestStepsGoOn(t *testing.T) {
	t.Parallel()
	rerun := idem.Orders
	rerun.OnInterrupted = idem.Rerun()
	oops := errors.New("oops")
	tests := []struct {
		name   string
		policy idem.Policy
		end    func() error
	}{
		{"plain error, fail closed", idem.Orders, func() error { return oops }},
		{"unknown, rerun", rerun, func() error { return idem.Unknown(oops) }},
		{"panic, rerun", rerun, func() error { panic("boom") }},
	}
	for _, tt := range tests {
		for after := 1; after < 3; after++ {
			t.Run(fmt.Sprint(tt.name, after), func(t *testing.T) {
				t.Parallel()
				g := openTxGuard(t, idem.WithPolicy(tt.policy))
				w := &work{t: t, after: after, end: tt.end}
				func() {
					defer func() { _ = recover() }()
					_, err := idem.Do(t.Context(), g, stepKey, nil, w.do)
					require.ErrorIs(t, err, oops)
				}()
				rec, err := g.Store().Get(t.Context(), stepKey)
				require.NoError(t, err)
				require.Equal(t, idem.Interrupted, rec.State)
				require.Len(t, rec.Steps, after)
				require.Equal(t, tt.policy.OnInterrupted.FailsClosed(), rec.Resume)

				w.end = nil
				res, err := idem.Do(t.Context(), g, stepKey, nil, w.do)
				require.NoError(t, err)
				require.Equal(t, "reserve done, charge done, ship done", res.Value)
				require.Equal(t, []string{"reserve", "charge", "ship"}, w.taken)
				require.Equal(t, 2, res.Record.Attempt)
				require.Empty(t, res.Record.Steps)
			})
		}
	}
}

func TestStepsFirstFailureReleases(t *testing.T) {
	t.Parallel()
	g := openTxGuard(t)
	w := &work{t: t, after: 0, end: func() error { return errors.New("oops") }}
	_, err := idem.Do(t.Context(), g, stepKey, nil, w.do)
	require.EqualError(t, err, "oops")
	_, err = g.Store().Get(t.Context(), stepKey)
	require.ErrorIs(t, err, idem.ErrNotFound, "nothing has happened")
}

func TestStepsChanged(t *testing.T) {
	t.Parallel()
	g := openTxGuard(t)
	w := &work{t: t, after: 2, end: func() error { return errors.New("oops") }}
	_, err := idem.Do(t.Context(), g, stepKey, nil, w.do)
	require.Error(t, err)
	_, err = idem.Do(t.Context(), g, stepKey, nil, func(ctx context.Context, a *idem.Attempt) (string, error) {
		name, ok := a.NextStep()
		require.True(t, ok)
		require.Equal(t, "reserve", name)
		return w.step(ctx, a, "charge")
	})
	var changed *idem.StepError
	require.ErrorAs(t, err, &changed)
	require.Equal(t, idem.StepError{Key: stepKey, Index: 0, Before: "reserve", Now: "charge"}, *changed)
	_, err = idem.Do(t.Context(), g, stepKey, nil, func(ctx context.Context, a *idem.Attempt) (int, error) {
		return idem.Step(ctx, a, "reserve", func(context.Context) (int, error) { panic("ran again") })
	})
	require.ErrorIs(t, err, idem.ErrUndecodable)
	require.ErrorContains(t, err, `step "reserve"`)
	require.Equal(t, []string{"reserve", "charge"}, w.taken)
	w.end = nil // and back to the program as it was
	_, err = idem.Do(t.Context(), g, stepKey, nil, w.do)
	require.NoError(t, err)
}

func TestStepRefuses(t *testing.T) {
	t.Parallel()
	g := openTxGuard(t)
	step := func(name string, result []byte) func(context.Context, *idem.Attempt) ([]byte, error) {
		return func(ctx context.Context, a *idem.Attempt) ([]byte, error) {
			return idem.Step(ctx, a, name, func(context.Context) ([]byte, error) { return result, nil })
		}
	}
	for _, name := range []string{"", strings.Repeat("n", 129)} {
		_, err := idem.Do(t.Context(), g, stepKey, nil, step(name, nil))
		require.ErrorIs(t, err, idem.ErrInvalidInput)
	}
	_, err := idem.Do(t.Context(), g, stepKey, nil, step("large", make([]byte, idem.MaxStepBytes)))
	require.ErrorIs(t, err, idem.ErrInterrupted, "it was done and is not remembered")
	require.ErrorIs(t, err, idem.ErrNotRecorded)
	_, err = idem.DoTx(t.Context(), g, idem.Key{Scope: "order", ID: "2"}, nil, func(ctx context.Context, tx *idem.Tx) ([]byte, error) {
		return step("in a transaction", nil)(ctx, tx.Attempt())
	})
	var none *idem.StepError
	require.ErrorAs(t, err, &none)
	_, err = idem.Do(t.Context(), g, idem.Key{Scope: "order", ID: "3"}, nil, func(ctx context.Context, a *idem.Attempt) (int, error) {
		for i := range idem.MaxSteps + 1 {
			if _, err := idem.Step(ctx, a, fmt.Sprint("n", i), func(context.Context) (int, error) { return i, nil }); err != nil {
				return i, err
			}
		}
		return 0, nil
	})
	require.ErrorIs(t, err, idem.ErrInvalidInput)
}

// TestStepsAcrossProcesses: the next holder of the file goes on, and renewals of
// the lease between steps do not get in their way.
func TestStepsAcrossProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "steps.db")
	w := &work{t: t, after: 2, end: func() error { return errors.New("oops") }}
	for range 3 {
		g, err := idem.Open(path)
		require.NoError(t, err)
		_, err = idem.Do(t.Context(), g, stepKey, nil, w.do)
		require.EqualError(t, err, "oops")
		require.NoError(t, g.Close())
	}
	require.Equal(t, []string{"reserve", "charge"}, w.taken)
}

func TestStepsAndLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := idem.Policy{Lease: 3 * time.Second, Retention: time.Hour, OnInterrupted: idem.Rerun()}
		g, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}), idem.WithPolicy(policy))
		require.NoError(t, err)
		defer g.Close()
		res, err := idem.Do(t.Context(), g, stepKey, nil, func(ctx context.Context, a *idem.Attempt) (int, error) {
			sum := 0
			for i := range 5 {
				time.Sleep(2500 * time.Millisecond)
				n, err := idem.Step(ctx, a, fmt.Sprint(i), func(context.Context) (int, error) {
					time.Sleep(2500 * time.Millisecond)
					return i, nil
				})
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		})
		require.NoError(t, err)
		require.Equal(t, 10, res.Value)
	})
}

// TestStepsNotComeTo: steps that did happen are not forgotten because a function
// ended without them.
func TestStepsNotComeTo(t *testing.T) {
	t.Parallel()
	for _, end := range []error{nil, idem.Permanent(errors.New("no"))} {
		g := openTxGuard(t)
		w := &work{t: t, after: 2, end: func() error { return errors.New("oops") }}
		_, err := idem.Do(t.Context(), g, stepKey, nil, w.do)
		require.Error(t, err)
		_, err = idem.Do(t.Context(), g, stepKey, nil, func(ctx context.Context, a *idem.Attempt) (string, error) {
			_, err := w.step(ctx, a, "reserve")
			require.NoError(t, err)
			return "ended", end
		})
		var untaken *idem.StepError
		require.ErrorAs(t, err, &untaken)
		require.Equal(t, idem.StepError{Key: stepKey, Index: 1, Before: "charge"}, *untaken)
		w.end = nil
		res, err := idem.Do(t.Context(), g, stepKey, nil, w.do)
		require.NoError(t, err)
		require.Equal(t, "reserve done, charge done, ship done", res.Value)
	}
}
