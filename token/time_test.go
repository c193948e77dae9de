package token_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t)
		tokens := newTokens(t, store)
		inTime, late, used := issue(t, tokens, ""), issue(t, tokens, "alice"), issue(t, tokens, "")
		require.NoError(t, tokens.Consume(t.Context(), used, ""))
		time.Sleep(5*time.Minute - time.Microsecond)
		require.NoError(t, tokens.Consume(t.Context(), inTime, ""))
		time.Sleep(time.Microsecond)

		require.ErrorIs(t, tokens.Consume(t.Context(), late, "alice"), token.ErrExpired)
		require.ErrorIs(t, tokens.Consume(t.Context(), late, "bob"), token.ErrSubject)
		require.ErrorIs(t, tokens.Consume(t.Context(), used, ""), token.ErrUsed)
		status, err := tokens.Inspect(t.Context(), late)
		require.NoError(t, err)
		require.Equal(t, token.Expired, status.State)
		require.True(t, status.UsedAt.IsZero())

		time.Sleep(token.DefaultMemory - time.Microsecond)
		_, err = store.Expire(t.Context(), 10)
		require.NoError(t, err)
		require.ErrorIs(t, tokens.Consume(t.Context(), late, "alice"), token.ErrExpired)
		require.ErrorIs(t, tokens.Consume(t.Context(), used, ""), token.ErrUsed)
		time.Sleep(time.Microsecond)
		for _, value := range []string{late, used} {
			require.ErrorIs(t, tokens.Consume(t.Context(), value, "alice"), token.ErrUnknown)
			_, err := tokens.Inspect(t.Context(), value)
			require.ErrorIs(t, err, token.ErrUnknown)
		}
		removed, err := store.Expire(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, 3, removed)
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := newTokens(t, newMemory(t), token.WithTTL(time.Second), token.WithMemory(0))
		open, used := issue(t, tokens, ""), issue(t, tokens, "")
		require.NoError(t, tokens.Consume(t.Context(), used, ""))
		require.ErrorIs(t, tokens.Consume(t.Context(), used, ""), token.ErrUsed)
		time.Sleep(time.Second)
		require.ErrorIs(t, tokens.Consume(t.Context(), open, ""), token.ErrUnknown)
		require.ErrorIs(t, tokens.Consume(t.Context(), used, ""), token.ErrUnknown)
	})
}

// TestDowntime: the store keeps records that ran out while it was closed. Their
// tokens have expired all the same.
func TestDowntime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	synctest.Test(t, func(t *testing.T) {
		open := func() *idem.BoltStore {
			s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
			require.NoError(t, err)
			return s
		}
		s := open()
		tokens := newTokens(t, s, token.WithMemory(0))
		value := issue(t, tokens, "")
		require.NoError(t, s.Close())
		time.Sleep(time.Hour)
		s = open()
		tokens = newTokens(t, s, token.WithMemory(0))
		require.ErrorIs(t, tokens.Consume(t.Context(), value, ""), token.ErrExpired)
		status, err := tokens.Inspect(t.Context(), value)
		require.NoError(t, err, "it is kept for a while, else this tests nothing")
		require.Equal(t, token.Expired, status.State)
		require.NoError(t, s.Close())
	})
}
