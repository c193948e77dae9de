package table_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/table"
)

// In a transaction rows of several tables commit together.
func ExampleTable_On() {
	dir, err := os.MkdirTemp("", "table")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	g, err := idem.Open(filepath.Join(dir, "shop.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close()
	orders, err := table.New[order](g.Store(), "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	stock, err := table.New[int](g.Store(), "stock")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := stock.Insert(ctx, "chairs", 1); err != nil {
		fmt.Println(err)
		return
	}
	sell := func(id string) error {
		_, err := idem.DoTx(ctx, g, idem.Key{Scope: "sell", ID: id}, nil, func(ctx context.Context, tx *idem.Tx) (string, error) {
			if _, err := orders.On(tx.Records()).Insert(ctx, id, order{Item: "a chair"}); err != nil {
				return "", err
			}
			stock := stock.On(tx.Records())
			row, err := stock.Get(ctx, "chairs")
			if err != nil {
				return "", err
			}
			if row.Value == 0 {
				return "", fmt.Errorf("none is left")
			}
			_, err = stock.Update(ctx, "chairs", row.Version, row.Value-1)
			return id, err
		})
		return err
	}
	fmt.Println(sell("o-1"))
	fmt.Println(sell("o-1"))
	fmt.Println(sell("o-2"))
	_, err = orders.Get(ctx, "o-2")
	fmt.Println(err)

	// Output:
	// <nil>
	// <nil>
	// none is left
	// get "orders/o-2": no record
}
