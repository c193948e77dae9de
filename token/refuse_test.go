package token_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

// readCounter counts what is asked of the store.
type readCounter struct {
	*idem.MemoryStore
	reads atomic.Int32
}

func (s *readCounter) Get(ctx context.Context, key idem.Key) (idem.Record, error) {
	s.reads.Add(1)
	return s.MemoryStore.Get(ctx, key)
}

func TestNotATokenOfOurs(t *testing.T) {
	t.Parallel()
	store := &readCounter{MemoryStore: newMemory(t)}
	tokens := newTokens(t, store)
	value := issue(t, tokens, "")
	tampered := "A" + value[1:]
	if tampered == value {
		tampered = "B" + value[1:]
	}
	tests := []struct {
		name, value string
		reads       int32
	}{
		{"empty", "", 0},
		{"cut", value[:31], 0},
		{"continued", value + "A", 0},
		{"space before", " " + value, 0},
		{"padded", value + "==", 0},
		{"not base64url", strings.Repeat("+", 32), 0},
		{"control characters", "\x00\x01" + value[2:], 0},
		{"not UTF-8", strings.Repeat("\xff", 32), 0},
		{"very long", strings.Repeat("A", 10<<20), 0},
		{"never issued", strings.Repeat("A", 32), 1},
		{"tampered with", tampered, 1},
	}
	for _, tt := range tests {
		before := store.reads.Load()
		err := tokens.Consume(t.Context(), tt.value, "")
		require.ErrorIs(t, err, token.ErrUnknown, tt.name)
		require.Less(t, len(err.Error()), 200, tt.name)
		require.Equal(t, tt.reads, store.reads.Load()-before, tt.name)
		status, err := tokens.Inspect(t.Context(), tt.value)
		require.ErrorIs(t, err, token.ErrUnknown, tt.name)
		require.Zero(t, status, tt.name)
	}
	require.NoError(t, tokens.Consume(t.Context(), value, ""))
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	store := newMemory(t)
	tests := []struct {
		name        string
		scope       string
		ttl, memory time.Duration
		want        error
	}{
		{"no scope", "", time.Minute, 0, idem.ErrInvalidKey},
		{"bad scope", "a/b", time.Minute, 0, idem.ErrInvalidKey},
		{"no TTL", "a", 0, 0, idem.ErrInvalidPolicy},
		{"short TTL", "a", time.Second - 1, 0, idem.ErrInvalidPolicy},
		{"long TTL", "a", 24*time.Hour + 1, 0, idem.ErrInvalidPolicy},
		{"negative memory", "a", time.Minute, -1, idem.ErrInvalidPolicy},
		{"endless memory", "a", time.Minute, idem.MaxRetention - time.Minute + 1, idem.ErrInvalidPolicy},
		{"no overflow", "a", time.Minute, 1<<63 - 1, idem.ErrInvalidPolicy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tokens, err := token.New(store, tt.scope, token.WithTTL(tt.ttl), token.WithMemory(tt.memory))
			require.ErrorIs(t, err, tt.want)
			require.Nil(t, tokens)
		})
	}
	_, err := token.New(nil, "a")
	require.ErrorContains(t, err, "needs a store")
}

func TestBadSubject(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, newMemory(t))
	value := issue(t, tokens, "")
	for _, subject := range []string{"a\nb", "\xff", strings.Repeat("s", 256), strings.Repeat("s", 1<<20)} {
		issued, err := tokens.Issue(t.Context(), subject)
		require.ErrorIs(t, err, idem.ErrInvalidKey)
		require.Zero(t, issued)
		require.ErrorIs(t, tokens.Consume(t.Context(), value, subject), idem.ErrInvalidKey)
	}
	require.NoError(t, tokens.Consume(t.Context(), value, ""))
}
