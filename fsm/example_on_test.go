package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
)

// In a transaction the transition commits with the caller's own rows.
func ExampleMachine_On() {
	dir, err := os.MkdirTemp("", "fsm")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	g, err := idem.Open(filepath.Join(dir, "orders.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close()
	orders, err := fsm.New(g.Store(), "order-state", fsm.Definition{
		Initial:     "PENDING",
		Transitions: map[string][]string{"PENDING": {"PAID"}, "PAID": nil},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := orders.Start(ctx, "o-1"); err != nil {
		fmt.Println(err)
		return
	}
	pay := func(intent string, fail error) {
		key := idem.Key{Scope: "pay", ID: intent}
		res, err := idem.DoTx(ctx, g, key, nil, func(ctx context.Context, tx *idem.Tx) (string, error) {
			if err := tx.Bucket("payments").Put([]byte("o-1"), []byte("19.99")); err != nil {
				return "", err
			}
			res, err := orders.On(tx.Records()).Fire(ctx, "o-1", "PAID", nil)
			if err != nil {
				return "", err
			}
			return res.Outcome.String(), fail
		})
		if err != nil {
			fmt.Println("nothing was kept:", err)
			return
		}
		fmt.Println(res.Value, "replayed:", res.Replayed)
	}
	pay("intent-1", errors.New("no such card"))
	pay("intent-1", nil)
	pay("intent-1", nil)
	pay("intent-2", nil)

	// Output:
	// nothing was kept: no such card
	// applied replayed: false
	// applied replayed: true
	// already replayed: false
}
