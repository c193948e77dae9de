package idem

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func memoryGuard(t testing.TB, opts ...Option) *Guard {
	g, err := New(NewMemoryStore(MemoryConfig{}), opts...)
	require.NoError(t, err)
	return g
}

// TestStepLeftRunning: a function may return while a goroutine of it is in a step.
func TestStepLeftRunning(t *testing.T) {
	g := memoryGuard(t)
	done := make(chan error, 1)
	go func() {
		_, err := Do(context.Background(), g, Key{"a", "b"}, nil, func(ctx context.Context, a *Attempt) (int, error) {
			in := make(chan struct{})
			go func() {
				_, _ = Step(ctx, a, "slow", func(ctx context.Context) (int, error) {
					close(in)
					<-ctx.Done()
					return 0, ctx.Err()
				})
			}()
			<-in
			return 0, Unknown(errors.New("took too long")) // nobody waits any longer
		})
		done <- err
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		t.Fatal("Do hangs")
	}
}

// TestNextStepInStep: a step may ask, and cannot take another one within.
func TestNextStepInStep(t *testing.T) {
	g := memoryGuard(t)
	done := make(chan error, 1)
	go func() {
		_, err := Do(context.Background(), g, Key{"a", "b"}, nil, func(ctx context.Context, a *Attempt) (int, error) {
			return Step(ctx, a, "outer", func(ctx context.Context) (int, error) {
				a.NextStep()
				return Step(ctx, a, "inner", func(context.Context) (int, error) { return 0, nil })
			})
		})
		done <- err
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		t.Fatal("NextStep hangs")
	}
}

// TestStepResultIsACopy: what is remembered is not the caller's to change.
func TestStepResultIsACopy(t *testing.T) {
	g := memoryGuard(t)
	buf := []byte("first")
	var second []byte
	run := func(fail bool) (Result[[]byte], error) {
		return Do(t.Context(), g, Key{"a", "b"}, nil, func(ctx context.Context, a *Attempt) ([]byte, error) {
			one, err := Step(ctx, a, "one", func(context.Context) ([]byte, error) { return buf, nil })
			if err != nil {
				return nil, err
			}
			second = append([]byte{}, one...)
			copy(one, "XXXXX") // the buffer is used for something else
			if _, err := Step(ctx, a, "two", func(context.Context) (int, error) { return 2, nil }); err != nil {
				return nil, err
			}
			if fail {
				return nil, errors.New("later")
			}
			return one, nil
		})
	}
	_, err := run(true)
	require.Error(t, err)
	_, err = run(false)
	require.NoError(t, err)
	require.Equal(t, "first", string(second), "the remembered result was changed")
}

// TestDoTxOverSteps: a transaction does not forget steps that happened.
func TestDoTxOverSteps(t *testing.T) {
	s, _ := edgeStore(t, BoltConfig{})
	defer s.Close()
	g, err := New(s)
	require.NoError(t, err)
	k := Key{"a", "b"}
	_, err = Do(t.Context(), g, k, nil, func(ctx context.Context, a *Attempt) (int, error) {
		if _, err := Step(ctx, a, "charge", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return 0, err
		}
		return 0, errors.New("later")
	})
	require.Error(t, err)
	_, err = DoTx(t.Context(), g, k, nil, func(context.Context, *Tx) (int, error) { return 7, nil })
	var step *StepError
	require.ErrorAs(t, err, &step)
}
