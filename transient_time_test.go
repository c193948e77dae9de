package idem

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A machine that sleeps, or whose clock is set forward, between the opening of a
// TransientStore and its use: others judge its leases by the wall clock, so it
// must go by it too.
func TestTransientTimeFollowsTheClockForward(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"beyond the lease": time.Hour, "beyond the retention": 48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			path := filepath.Join(t.TempDir(), "idem.db")
			c := BoltConfig{wall: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
			policy := WithPolicy(Policy{Retention: 24 * time.Hour, Lease: 30 * time.Second, OnInterrupted: Rerun()})
			guard := func() *Guard {
				s, err := OpenTransient(t.Context(), path, c)
				require.NoError(t, err)
				g, err := New(s, policy)
				require.NoError(t, err)
				return g
			}
			one := guard()
			ahead.Store(int64(step))
			two := guard()
			runs := 0
			inner := func(context.Context, *Attempt) (int, error) { runs++; return 2, nil }
			_, err := Do(t.Context(), one, faultKey("k"), nil, func(ctx context.Context, _ *Attempt) (int, error) {
				runs++
				_, err := Do(ctx, two, faultKey("k"), nil, inner)
				require.ErrorIs(t, err, ErrInProgress)
				return 1, nil
			})
			require.NoError(t, err)
			res, err := Do(t.Context(), two, faultKey("k"), nil, inner)
			require.NoError(t, err)
			require.Equal(t, 1, res.Value)
			require.Equal(t, 1, runs)
		})
	}
}

// openOutcome makes a commit and then reports that it failed.
type openOutcome struct {
	engine
	fail *atomic.Bool
}

func (e openOutcome) commit(b *batch) error {
	if err := e.engine.commit(b); err != nil || !e.fail.Load() {
		return err
	}
	return syscall.EIO
}

// A claim whose commit ends with an open outcome poisons one opening only: the
// next one finds it, and takes it back since the function has not run.
func TestTransientClaimOfOpenOutcomeIsWithdrawn(t *testing.T) {
	t.Parallel()
	var fail atomic.Bool
	c := BoltConfig{engine: func(e engine) engine { return openOutcome{e, &fail} }}
	s, err := OpenTransient(t.Context(), filepath.Join(t.TempDir(), "idem.db"), c)
	require.NoError(t, err)
	g, err := New(s)
	require.NoError(t, err)
	once := &fail
	once.Store(true)
	ran := 0
	_, err = Do(t.Context(), g, faultKey("k"), nil, func(context.Context, *Attempt) (int, error) { ran++; return 1, nil })
	require.ErrorIs(t, err, syscall.EIO)
	require.NotErrorIs(t, err, ErrPoisoned)
	fail.Store(false)
	_, err = Do(t.Context(), g, faultKey("k"), nil, func(context.Context, *Attempt) (int, error) { ran++; return 1, nil })
	require.NoError(t, err)
	require.Equal(t, 1, ran)
}
