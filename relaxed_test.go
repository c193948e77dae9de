package idem

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var relaxedPolicy = Policy{Retention: time.Hour, Lease: time.Minute, Durability: Relaxed}

func relaxedDo(t *testing.T, g *Guard, id string) (Result[string], error) {
	t.Helper()
	return Do(t.Context(), g, faultKey(id), nil, func(context.Context, *Attempt) (string, error) { return "result of " + id, nil })
}

// relaxedGuard is a guard over a store whose commits run inside around.
func relaxedGuard(t *testing.T, path string, around func(commit func() error) error) (*BoltStore, *Guard) {
	t.Helper()
	s := openFault(t, path, aroundCommits(around))
	g, err := New(s, WithPolicy(relaxedPolicy))
	require.NoError(t, err)
	return s, g
}

// TestRelaxedSharesTheNextSync counts commits: a result must not have one of its
// own when another write follows, must have one soon when none does, and must be
// written by Close.
func TestRelaxedSharesTheNextSync(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	synctest.Test(t, func(t *testing.T) {
		commits := 0
		s, g := relaxedGuard(t, path, func(commit func() error) error {
			commits++
			return commit()
		})
		const calls = 10
		for i := range calls {
			_, err := relaxedDo(t, g, fmt.Sprint(i))
			require.NoError(t, err)
		}
		require.Equal(t, calls, commits, "each claim takes the result before it along")
		_, err := relaxedDo(t, g, fmt.Sprint(calls-1))
		require.ErrorIs(t, err, ErrInProgress, "the last result is not yet durable")

		time.Sleep(relaxedDelay)
		synctest.Wait()
		require.Equal(t, calls+1, commits)
		res, err := relaxedDo(t, g, fmt.Sprint(calls-1))
		require.NoError(t, err)
		require.True(t, res.Replayed)

		_, err = relaxedDo(t, g, "last")
		require.NoError(t, err)
		require.Equal(t, calls+2, commits)
		require.NoError(t, s.Close())
	})
	s := openFault(t, path, BoltConfig{})
	rec, err := s.Get(t.Context(), faultKey("last"))
	require.NoError(t, err)
	require.Equal(t, Completed, rec.State)
}

// TestRelaxedCrash takes the file as it is when the result has been handed to
// the caller and is not yet durable: the key must be interrupted, not absent.
func TestRelaxedCrash(t *testing.T) {
	t.Parallel()
	path, crashed := faultPath(t), filepath.Join(t.TempDir(), "idem.db")
	synctest.Test(t, func(t *testing.T) {
		s, g := relaxedGuard(t, path, func(commit func() error) error { return commit() })
		_, err := relaxedDo(t, g, "k")
		require.NoError(t, err)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(crashed, content, 0o600))
		require.NoError(t, s.Close())
	})
	_, g := relaxedGuard(t, crashed, func(commit func() error) error { return commit() })
	_, err := relaxedDo(t, g, "k")
	require.ErrorIs(t, err, ErrInterrupted)
}

// TestRelaxedAndStrictTogether: a strict write that was checked against a result
// which is put off must wait until both are durable.
func TestRelaxedAndStrictTogether(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	synctest.Test(t, func(t *testing.T) {
		gate, open := make(chan struct{}), false
		s, g := relaxedGuard(t, path, func(commit func() error) error {
			if open {
				<-gate
			}
			return commit()
		})
		_, err := relaxedDo(t, g, "k")
		require.NoError(t, err)
		open = true
		answered := make(chan error, 1)
		go func() {
			_, err := s.Create(t.Context(), completed("k", "another"))
			answered <- err
		}()
		synctest.Wait()
		require.Empty(t, answered, "told of a result that is not durable")
		close(gate)
		require.ErrorIs(t, <-answered, ErrConflict)
		require.NoError(t, s.Close())
	})
}

// TestRelaxedConflict: a write that has lost its record is told so at once.
func TestRelaxedConflict(t *testing.T) {
	t.Parallel()
	s := openFault(t, faultFile(t, 1, 10), BoltConfig{})
	_, err := s.SwapRelaxed(t.Context(), 12345, completed("k0", "late"))
	require.ErrorIs(t, err, ErrConflict)
	_, err = s.SwapRelaxed(t.Context(), 1, completed("none", "late"))
	require.ErrorIs(t, err, ErrConflict)
}

// TestRelaxedWriteFails: the failure of a write that nobody waits for is that of
// everything that comes after it.
func TestRelaxedWriteFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault error
		later error // of the next write
		close error
	}{
		{"outcome unknown", errInjected, ErrPoisoned, ErrPoisoned},
		{"no space", errNoSpace, ErrFull, ErrFull},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, closes := range []bool{false, true} {
				failing := false
				s, g := relaxedGuard(t, faultPath(t), func(commit func() error) error {
					if failing {
						return tt.fault
					}
					return commit()
				})
				_, err := relaxedDo(t, g, "k")
				require.NoError(t, err)
				failing = true
				if closes {
					require.ErrorIs(t, s.Close(), tt.close)
					continue
				}
				_, err = s.Create(t.Context(), completed("next", "v"))
				require.ErrorIs(t, err, tt.later)
			}
		})
	}
}

// TestRelaxedVersionIsNotGivenAgain: a relaxed write was told its version and
// then found no space. What is written later must have a higher one.
func TestRelaxedVersionIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	failing := false
	s := openFault(t, faultPath(t), aroundCommits(func(commit func() error) error {
		if failing {
			return errNoSpace
		}
		return commit()
	}))
	claim, err := s.Create(t.Context(), faultRecord("k", Processing, nil, "o"))
	require.NoError(t, err)
	failing = true
	told, err := s.SwapRelaxed(t.Context(), claim.Version, completed("k", "v"))
	require.NoError(t, err)
	_, err = s.Create(t.Context(), completed("refused", "v"))
	require.ErrorIs(t, err, ErrFull)
	failing = false
	next, err := s.Create(t.Context(), completed("next", "v"))
	require.NoError(t, err)
	require.Greater(t, next.Version, told.Version)
}

func TestPolicyDurability(t *testing.T) {
	t.Parallel()
	require.NoError(t, relaxedPolicy.Validate())
	p := relaxedPolicy
	p.Durability = 2
	require.ErrorIs(t, p.Validate(), ErrInvalidPolicy)
}
