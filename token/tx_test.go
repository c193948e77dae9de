package token_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

// TestConsumeInTx: the token is used exactly if the transaction commits.
func TestConsumeInTx(t *testing.T) {
	t.Parallel()
	store := openBolt(t, filepath.Join(t.TempDir(), "idem.db"))
	tokens := newTokens(t, store)
	value := issue(t, tokens, "alice")
	failed := errors.New("the work failed")
	place := func(result error) error {
		return store.Update(t.Context(), func(tx *idem.Tx) error {
			within := tokens.On(tx.Records())
			if err := within.Consume(t.Context(), value, "alice"); err != nil {
				return err
			}
			require.ErrorIs(t, within.Consume(t.Context(), value, "alice"), token.ErrUsed, "it sees itself")
			if err := tx.Bucket("orders").Append([]byte("order")); err != nil {
				return err
			}
			return result
		})
	}
	require.ErrorIs(t, place(failed), failed)
	status, err := tokens.Inspect(t.Context(), value)
	require.NoError(t, err)
	require.Equal(t, token.Open, status.State)
	require.NoError(t, place(nil))
	require.ErrorIs(t, place(nil), token.ErrUsed)
	require.ErrorIs(t, tokens.Consume(t.Context(), value, "alice"), token.ErrUsed)
	require.Equal(t, 1, orders(t, store))
}

func orders(t *testing.T, store *idem.BoltStore) (n int) {
	t.Helper()
	require.NoError(t, store.View(t.Context(), func(tx *idem.Tx) error {
		for _, err := range tx.Bucket("orders").Range(nil, nil) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	}))
	return n
}

// TestOneOfManyTransactions: submits of one form with keys of their own.
func TestOneOfManyTransactions(t *testing.T) {
	t.Parallel()
	store := openBolt(t, filepath.Join(t.TempDir(), "idem.db"))
	guard, err := idem.New(store)
	require.NoError(t, err)
	tokens := newTokens(t, store)
	value := issue(t, tokens, "")
	var won, used atomic.Int32
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			key := idem.Key{Scope: "order", ID: fmt.Sprint(i)}
			_, err := idem.DoTx(t.Context(), guard, key, nil, func(ctx context.Context, tx *idem.Tx) (int, error) {
				if err := tokens.On(tx.Records()).Consume(ctx, value, ""); err != nil {
					return 0, err
				}
				return i, tx.Bucket("orders").Append([]byte("order"))
			})
			switch {
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
	require.EqualValues(t, 29, used.Load())
	require.Equal(t, 1, orders(t, store))
}

// TestIssueInTx: a token that is issued in a transaction is good when it commits.
func TestIssueInTx(t *testing.T) {
	t.Parallel()
	store := openBolt(t, filepath.Join(t.TempDir(), "idem.db"))
	tokens := newTokens(t, store)
	var value string
	require.NoError(t, store.Update(t.Context(), func(tx *idem.Tx) error {
		issued, err := tokens.On(tx.Records()).Issue(t.Context(), "alice")
		value = issued.Value
		return err
	}))
	require.NoError(t, tokens.Consume(t.Context(), value, "alice"))
}
