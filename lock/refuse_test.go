package lock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/lock"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	guard, err := idem.New(newMemory(t))
	require.NoError(t, err)
	tests := []struct {
		name  string
		scope string
		ttl   time.Duration
		want  error
	}{
		{"no scope", "", time.Minute, idem.ErrInvalidKey},
		{"bad scope", "a/b", time.Minute, idem.ErrInvalidKey},
		{"no lease", "a", 0, idem.ErrInvalidPolicy},
		{"short lease", "a", idem.MinLease - 1, idem.ErrInvalidPolicy},
		{"endless lease", "a", idem.MaxRetention + 1, idem.ErrInvalidPolicy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, err := lock.New(guard, tt.scope, lock.WithTTL(tt.ttl))
			require.ErrorIs(t, err, tt.want)
			require.Nil(t, l)
		})
	}
	_, err = lock.New(nil, "a")
	require.ErrorContains(t, err, "needs a guard")
}

func TestLockRefuses(t *testing.T) {
	t.Parallel()
	store := newMemory(t)
	l := newLocks(t, store)
	for _, name := range []string{"", "a\nb", "\xff", strings.Repeat("n", 256), strings.Repeat("n", 1<<20)} {
		h, err := l.Lock(t.Context(), name)
		require.ErrorIs(t, err, idem.ErrInvalidKey)
		require.Less(t, len(err.Error()), 200)
		require.Nil(t, h)
	}
	for _, state := range []idem.State{idem.Completed, idem.Failed} {
		_, err := store.Create(t.Context(), idem.Record{
			Key: idem.Key{Scope: "jobs", ID: state.String()}, State: state, Kind: "func",
			Value: []byte("{}"), ExpiresAt: store.Now().Add(time.Hour),
		})
		require.NoError(t, err)
		h, err := l.Lock(t.Context(), state.String())
		require.ErrorContains(t, err, `a record of kind "func" that is `+state.String())
		require.Nil(t, h)
	}
}

func TestClosedGuard(t *testing.T) {
	t.Parallel()
	guard, err := idem.New(newMemory(t))
	require.NoError(t, err)
	l, err := lock.New(guard, "jobs")
	require.NoError(t, err)
	require.NoError(t, guard.Close())
	h, err := l.Lock(t.Context(), "a")
	require.ErrorIs(t, err, idem.ErrClosed)
	require.Nil(t, h)
}
