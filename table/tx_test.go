package table_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/table"
)

func newGuard(t testing.TB, store idem.Store) *idem.Guard {
	t.Helper()
	g, err := idem.New(store)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// TestInTransaction: what was written commits with the rest, or not at all, and the
// version that a transaction was told is the one that is stored.
func TestInTransaction(t *testing.T) {
	t.Parallel()
	store := openBolt(t)
	g, tab := newGuard(t, store), newTable(t, store, byEmail())
	free := insert(t, tab, "free", account{Email: "free@x"})
	oops := errors.New("oops")
	work := func(end error) (uint64, error) {
		res, err := idem.DoTx(t.Context(), g, idem.Key{Scope: "open", ID: "1"}, nil, func(ctx context.Context, tx *idem.Tx) (uint64, error) {
			tab := tab.On(tx.Records())
			if err := tab.Delete(ctx, "free", free.Version); err != nil {
				return 0, err
			}
			row, err := tab.Insert(ctx, "1", account{Email: "free@x"})
			if err != nil {
				return 0, err
			}
			row, err = tab.Update(ctx, "1", row.Version, account{Email: "a@x"})
			if err != nil {
				return 0, err
			}
			if _, err := tab.Insert(ctx, "2", account{Email: "free@x"}); err != nil {
				return 0, err
			}
			if _, err = tab.Insert(ctx, "3", account{Email: "a@x"}); !errors.Is(err, table.ErrDuplicate) {
				return 0, fmt.Errorf("no duplicate: %w", err)
			}
			_, err = tab.Update(ctx, "1", row.Version, account{Email: "free@x"})
			if !errors.Is(err, table.ErrDuplicate) {
				return 0, fmt.Errorf("no duplicate: %w", err)
			}
			return row.Version, end
		})
		return res.Value, err
	}
	_, err := work(oops)
	require.ErrorIs(t, err, oops)
	require.Equal(t, map[string]account{"free": {"free@x", 0}}, content(t, tab))
	version, err := work(nil)
	require.NoError(t, err)
	require.Equal(t, map[string]account{"1": {"a@x", 0}, "2": {"free@x", 0}}, content(t, tab))
	require.Equal(t, version, get(t, tab, "1").Version)
	require.NoError(t, flawOf(store))
	_, err = tab.Update(t.Context(), "1", version, account{Email: "b@x"})
	require.NoError(t, err)

	require.NoError(t, store.Update(t.Context(), func(tx *idem.Tx) error {
		for _, err := range tab.On(tx.Records()).All(t.Context(), "") {
			require.Error(t, err)
		}
		return nil
	}))
}

// TestTransactionsRace with each other and with plain calls for one value.
func TestTransactionsRace(t *testing.T) {
	t.Parallel()
	store := openBolt(t)
	tab := newTable(t, store, byEmail())
	var mu sync.Mutex
	var got []string
	var wg sync.WaitGroup
	for n := range 30 {
		id := fmt.Sprint(n)
		wg.Go(func() {
			call := func(tab *table.Table[account]) error {
				_, err := tab.Insert(t.Context(), id, account{"a@x", n})
				return err
			}
			err := error(nil)
			if n%2 == 0 {
				err = call(tab)
			} else {
				err = store.Update(t.Context(), func(tx *idem.Tx) error { return call(tab.On(tx.Records())) })
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				got = append(got, id)
			} else if !errors.Is(err, table.ErrDuplicate) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Len(t, got, 1)
	require.Len(t, content(t, tab), 1)
	require.NoError(t, flawOf(store))
}
