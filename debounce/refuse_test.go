package debounce_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/debounce"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	store := newMemory(t)
	tests := []struct {
		name  string
		scope string
		every time.Duration
		want  error
	}{
		{"no scope", "", time.Second, idem.ErrInvalidKey},
		{"bad scope", "a/b", time.Second, idem.ErrInvalidKey},
		{"long scope", strings.Repeat("s", 129), time.Second, idem.ErrInvalidKey},
		{"no interval", "a", 0, idem.ErrInvalidPolicy},
		{"negative interval", "a", -time.Second, idem.ErrInvalidPolicy},
		{"short interval", "a", time.Millisecond - 1, idem.ErrInvalidPolicy},
		{"long interval", "a", 24*time.Hour + 1, idem.ErrInvalidPolicy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, err := debounce.New(store, tt.scope, tt.every)
			require.ErrorIs(t, err, tt.want)
			require.Nil(t, d)
		})
	}
	_, err := debounce.New(nil, "a", time.Second)
	require.ErrorContains(t, err, "needs a store")
	for _, every := range []time.Duration{debounce.MinInterval, debounce.MaxInterval} {
		_, err := debounce.New(store, "a", every)
		require.NoError(t, err)
	}
}

func TestAllowRefuses(t *testing.T) {
	t.Parallel()
	store := newMemory(t)
	d := newDebouncer(t, store, time.Hour)
	for _, name := range []string{"", "a\nb", "\xff", strings.Repeat("n", 256), strings.Repeat("n", 1<<20)} {
		decision, err := d.Allow(t.Context(), name)
		require.ErrorIs(t, err, idem.ErrInvalidKey)
		require.Less(t, len(err.Error()), 200)
		require.Zero(t, decision)
	}
	_, err := store.Create(t.Context(), idem.Record{
		Key: idem.Key{Scope: "resend", ID: "taken"}, State: idem.Completed, Kind: "func", ExpiresAt: store.Now().Add(time.Hour),
	})
	require.NoError(t, err)
	decision, err := d.Allow(t.Context(), "taken")
	require.ErrorContains(t, err, `kind "func"`)
	require.Zero(t, decision)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	decision, err = d.Allow(ctx, "late")
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, decision)

	full := newDebouncer(t, idem.NewMemoryStore(idem.MemoryConfig{MaxRecords: 1}), time.Hour)
	require.True(t, allow(t, full, "first").Allowed)
	decision, err = full.Allow(t.Context(), "second")
	require.ErrorIs(t, err, idem.ErrFull)
	require.Zero(t, decision)
	require.False(t, allow(t, full, "first").Allowed)
}
