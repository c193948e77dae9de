package token_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

// stores are the kinds of stores that everything must work on.
var stores = []struct {
	name string
	open func(t *testing.T, path string) idem.Store
}{
	{"memory", func(t *testing.T, _ string) idem.Store { return newMemory(t) }},
	{"bolt", func(t *testing.T, path string) idem.Store { return openBolt(t, path) }},
	{"transient", func(t *testing.T, path string) idem.Store {
		s, err := idem.OpenTransient(t.Context(), path, idem.BoltConfig{LockTimeout: time.Minute})
		require.NoError(t, err)
		return s
	}},
}

func newMemory(t *testing.T) *idem.MemoryStore {
	s := idem.NewMemoryStore(idem.MemoryConfig{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openBolt(t *testing.T, path string) *idem.BoltStore {
	t.Helper()
	s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newTokens(t *testing.T, store idem.Store, opts ...token.Option) *token.Tokens {
	t.Helper()
	tokens, err := token.New(store, "form", opts...)
	require.NoError(t, err)
	return tokens
}

func issue(t *testing.T, tokens *token.Tokens, subject string) string {
	t.Helper()
	issued, err := tokens.Issue(t.Context(), subject)
	require.NoError(t, err)
	return issued.Value
}

func TestToken(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			tokens := newTokens(t, store.open(t, filepath.Join(t.TempDir(), "idem.db")))
			issued, err := tokens.Issue(t.Context(), "alice")
			require.NoError(t, err)
			require.Regexp(t, `^[A-Za-z0-9_-]{32}$`, issued.Value)
			status, err := tokens.Inspect(t.Context(), issued.Value)
			require.NoError(t, err)
			require.Equal(t, token.Status{
				State: token.Open, IssuedAt: issued.ExpiresAt.Add(-token.DefaultTTL), ExpiresAt: issued.ExpiresAt, Bound: true,
			}, status)

			require.NoError(t, tokens.Consume(t.Context(), issued.Value, "alice"))
			for range 2 {
				err := tokens.Consume(t.Context(), issued.Value, "alice")
				require.ErrorIs(t, err, token.ErrUsed)
				var used *token.UsedError
				require.ErrorAs(t, err, &used)
				status, err := tokens.Inspect(t.Context(), issued.Value)
				require.NoError(t, err)
				require.Equal(t, token.Used, status.State)
				require.Equal(t, used.At, status.UsedAt)
				require.WithinRange(t, used.At, status.IssuedAt, issued.ExpiresAt)
			}
			require.NoError(t, tokens.Consume(t.Context(), issue(t, tokens, "alice"), "alice"), "the next one")
		})
	}
}

// TestStoredForm: what is in the store neither is the token nor names the subject.
func TestStoredForm(t *testing.T) {
	t.Parallel()
	store := newMemory(t)
	tokens := newTokens(t, store)
	value, other := issue(t, tokens, "alice@example.com"), issue(t, tokens, "alice@example.com")
	sum := sha256.Sum256([]byte(value))
	key := idem.Key{Scope: "form", ID: hex.EncodeToString(sum[:])}
	open, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, "token", open.Kind)
	require.Equal(t, idem.Processing, open.State)
	require.Empty(t, open.Owner)
	require.Equal(t, open.CreatedAt.Add(token.DefaultTTL+token.DefaultMemory), open.ExpiresAt)
	require.Equal(t, open.ExpiresAt, open.LeaseUntil)
	require.Regexp(t, `^\{"expires":"20[^"]+Z","subject":"[0-9a-f]{64}"\}$`, string(open.Value))

	require.NoError(t, tokens.Consume(t.Context(), value, "alice@example.com"))
	used, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, idem.Completed, used.State)
	require.Equal(t, open.ExpiresAt, used.ExpiresAt)
	require.True(t, used.LeaseUntil.IsZero())
	require.Regexp(t, `^\{"expires":"[^"]+","subject":"[0-9a-f]{64}","used":"20[^"]+Z"\}$`, string(used.Value))

	marks := make(map[string]bool)
	for rec, err := range store.Scan(t.Context(), idem.Query{}) {
		require.NoError(t, err)
		all := rec.Key.String() + rec.Owner + string(rec.Value)
		for _, secret := range []string{value, other, "alice"} {
			require.NotContains(t, all, secret)
		}
		_, mark, _ := strings.Cut(string(rec.Value), `"subject":`)
		marks[mark[:66]] = true
	}
	require.Len(t, marks, 2, "one subject looks different with each token")
	issue(t, tokens, "")
}

func TestSubjectAndScope(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			s := store.open(t, filepath.Join(t.TempDir(), "idem.db"))
			tokens := newTokens(t, s)
			alice, nobody := issue(t, tokens, "alice"), issue(t, tokens, "")
			require.ErrorIs(t, tokens.Consume(t.Context(), alice, "bob"), token.ErrSubject)
			require.ErrorIs(t, tokens.Consume(t.Context(), alice, ""), token.ErrSubject)
			require.ErrorIs(t, tokens.Consume(t.Context(), nobody, "alice"), token.ErrSubject)

			foreign, err := token.New(s, "other-form")
			require.NoError(t, err)
			require.ErrorIs(t, foreign.Consume(t.Context(), alice, "alice"), token.ErrUnknown)
			_, err = foreign.Inspect(t.Context(), alice)
			require.ErrorIs(t, err, token.ErrUnknown)

			status, err := tokens.Inspect(t.Context(), nobody)
			require.NoError(t, err)
			require.Equal(t, token.Open, status.State, "nothing of that used it")
			require.False(t, status.Bound)
			require.NoError(t, tokens.Consume(t.Context(), alice, "alice"))
			require.NoError(t, tokens.Consume(t.Context(), nobody, ""))
			require.ErrorIs(t, tokens.Consume(t.Context(), alice, "bob"), token.ErrSubject, "who is told nothing else")
		})
	}
}

func TestOneOfManyConsumers(t *testing.T) {
	t.Parallel()
	for _, store := range stores[:2] {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			tokens := newTokens(t, store.open(t, filepath.Join(t.TempDir(), "idem.db")))
			value := issue(t, tokens, "alice")
			var won, used atomic.Int32
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					switch err := tokens.Consume(t.Context(), value, "alice"); {
					case err == nil:
						won.Add(1)
					case errors.Is(err, token.ErrUsed):
						used.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, won.Load())
			require.EqualValues(t, 99, used.Load())
		})
	}
}

func TestStateNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "open used expired state(0)",
		strings.Join([]string{token.Open.String(), token.Used.String(), token.Expired.String(), token.State(0).String()}, " "))
}
