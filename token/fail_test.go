package token_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

// brokenStore fails its Swaps, after the write or without it, and has something
// else happen before.
type brokenStore struct {
	*idem.MemoryStore
	before func()
	fail   error
	write  bool
}

func (s *brokenStore) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	if s.fail == nil || s.write {
		stored, err := s.MemoryStore.Swap(ctx, version, rec)
		if s.fail == nil || err != nil {
			return stored, err
		}
	}
	return idem.Record{}, s.fail
}

// TestOpenOutcome: an error of a write that was made is not the caller's, and one
// of a write that was not made leaves the token open.
func TestOpenOutcome(t *testing.T) {
	t.Parallel()
	down := errors.New("connection reset")
	store := &brokenStore{MemoryStore: newMemory(t), fail: down}
	tokens := newTokens(t, store)
	value := issue(t, tokens, "")
	require.ErrorIs(t, tokens.Consume(t.Context(), value, ""), down)
	store.write = true
	require.NoError(t, tokens.Consume(t.Context(), value, ""))
	require.ErrorIs(t, tokens.Consume(t.Context(), value, ""), token.ErrUsed)

	other := issue(t, tokens, "")
	store.write = false
	store.before = func() {
		store.fail = nil
		if err := tokens.Consume(t.Context(), other, ""); err != nil {
			t.Error(err)
		}
		store.fail = down
	}
	require.ErrorIs(t, tokens.Consume(t.Context(), other, ""), down, "it was another call that used it")
}

// TestOvertaken: the record changes between a call's read and its write.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	store := &brokenStore{MemoryStore: newMemory(t)}
	tokens := newTokens(t, store)
	value := issue(t, tokens, "")
	store.before = func() {
		if err := tokens.Consume(t.Context(), value, ""); err != nil {
			t.Error(err)
		}
	}
	require.ErrorIs(t, tokens.Consume(t.Context(), value, ""), token.ErrUsed)

	gone := issue(t, tokens, "")
	store.before = func() {
		rec, err := store.Get(t.Context(), keyOf(gone))
		if err == nil {
			err = store.Delete(t.Context(), rec.Key, rec.Version)
		}
		if err != nil {
			t.Error(err)
		}
	}
	require.ErrorIs(t, tokens.Consume(t.Context(), gone, ""), token.ErrUnknown)
}

func keyOf(value string) idem.Key {
	sum := sha256.Sum256([]byte(value))
	return idem.Key{Scope: "form", ID: hex.EncodeToString(sum[:])}
}

func TestStoreFails(t *testing.T) {
	t.Parallel()
	store := newMemory(t)
	tokens := newTokens(t, store)
	value := issue(t, tokens, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tokens.Consume(ctx, value, ""), context.Canceled)
	_, err := tokens.Issue(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
	status, err := tokens.Inspect(t.Context(), value)
	require.NoError(t, err)
	require.Equal(t, token.Open, status.State)

	require.NoError(t, store.Close())
	err = tokens.Consume(t.Context(), value, "")
	require.ErrorIs(t, err, idem.ErrClosed)
	require.NotContains(t, err.Error(), value)
	issued, err := tokens.Issue(t.Context(), "")
	require.ErrorIs(t, err, idem.ErrClosed)
	require.Zero(t, issued)
	_, err = tokens.Inspect(t.Context(), value)
	require.ErrorIs(t, err, idem.ErrClosed)
}

// TestForeignRecord: what is under the key is not an open token.
func TestForeignRecord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		rec  idem.Record
		want string
	}{
		{"another kind", idem.Record{State: idem.Completed, Kind: "func", Value: []byte("{}")}, `kind "func"`},
		{"no JSON", idem.Record{State: idem.Completed, Kind: "token", Value: []byte("?")}, "cannot be read"},
		{"settled by hand", idem.Record{State: idem.Completed, Kind: "token", Value: []byte(`{"expires":"2999-01-01T00:00:00Z"}`)}, "used at"},
		{"settled as failed", idem.Record{State: idem.Failed, Kind: "token", Value: []byte(`{"expires":"2999-01-01T00:00:00Z"}`)}, "used at"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := newMemory(t)
			value := issue(t, newTokens(t, newMemory(t)), "")
			rec := tt.rec
			rec.Key, rec.UpdatedAt, rec.ExpiresAt = keyOf(value), store.Now(), store.Now().Add(time.Hour)
			_, err := store.Create(t.Context(), rec)
			require.NoError(t, err)
			require.ErrorContains(t, newTokens(t, store).Consume(t.Context(), value, ""), tt.want)
		})
	}
}
