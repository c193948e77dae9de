package fsm_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
)

func newGuard(t testing.TB, store idem.Store) *idem.Guard {
	t.Helper()
	g, err := idem.New(store)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func row(t testing.TB, s *idem.BoltStore, key string) (value []byte) {
	t.Helper()
	require.NoError(t, s.View(t.Context(), func(tx *idem.Tx) error {
		var err error
		value, err = tx.Bucket("orders").Get([]byte(key))
		return err
	}))
	return value
}

// TestInTransaction: the transition commits with the user's row, or neither does.
func TestInTransaction(t *testing.T) {
	t.Parallel()
	store := openBolt(t)
	g, m := newGuard(t, store), newMachine(t, store, orderStates())
	oops := errors.New("oops")
	pay := func(id string, end error) (fsm.Outcome, error) {
		res, err := idem.DoTx(t.Context(), g, idem.Key{Scope: "pay", ID: id}, nil, func(ctx context.Context, tx *idem.Tx) (fsm.Outcome, error) {
			orders := m.On(tx.Records())
			if _, err := orders.Start(ctx, id); err != nil {
				return 0, err
			}
			res, err := orders.Fire(ctx, id, "PAID", nil)
			if err != nil {
				return 0, err
			}
			if err := tx.Bucket("orders").Put([]byte(id), []byte("paid")); err != nil {
				return 0, err
			}
			return res.Outcome, end
		}, idem.WithTraceID("trace-1"))
		return res.Value, err
	}
	_, err := pay("1", oops)
	require.ErrorIs(t, err, oops)
	_, err = m.Get(t.Context(), "1")
	require.ErrorIs(t, err, idem.ErrNotFound)
	require.Nil(t, row(t, store, "1"))

	outcome, err := pay("1", nil)
	require.NoError(t, err)
	require.Equal(t, fsm.Applied, outcome)
	in, err := m.Get(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, "PAID", in.State)
	require.Equal(t, "trace-1", in.History[0].TraceID)
	require.Equal(t, "paid", string(row(t, store, "1")))
	require.Equal(t, fsm.Applied, fire(t, m, "1", "SHIPPED").Outcome)
}

// TestRaceOfTransactions: transactions and plain calls race for two ways out. The
// row says what the state says.
func TestRaceOfTransactions(t *testing.T) {
	t.Parallel()
	store := openBolt(t)
	def := orderStates()
	def.Transitions["PAID"] = []string{"SHIPPED"}
	m := newMachine(t, store, def)
	start(t, m, "1")
	ways := []string{"PAID", "CANCELED"}
	applied := make([]bool, 20)
	var wg sync.WaitGroup
	for n := range applied {
		wg.Go(func() {
			to := ways[n%2]
			err := store.Update(t.Context(), func(tx *idem.Tx) error {
				applied[n] = false
				res, err := m.On(tx.Records()).Fire(t.Context(), "1", to, nil)
				if err != nil || res.Outcome == fsm.Already {
					return err
				}
				applied[n] = true
				return tx.Bucket("orders").Put([]byte("1"), []byte(to))
			})
			if err != nil && !errors.Is(err, fsm.ErrIllegal) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wins := 0
	for _, won := range applied {
		if won {
			wins++
		}
	}
	require.Equal(t, 1, wins)
	in, err := m.Get(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, in.State, string(row(t, store, "1")))
}
