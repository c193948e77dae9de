package table_test

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/table"
)

type order struct {
	Item    string
	Receipt string
}

// A repeat gets the row that is there.
func ExampleTable_Insert() {
	ctx := context.Background()
	orders, err := table.New[order](idem.NewMemoryStore(idem.MemoryConfig{}), "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range []string{"a chair", "a table"} {
		row, err := orders.Insert(ctx, "o-1042", order{Item: item})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(row.Value.Item, "existing:", row.Existing)
	}

	// Output:
	// a chair existing: false
	// a chair existing: true
}

// Of two who have read one version one is told what the other has written.
func ExampleTable_Update() {
	ctx := context.Background()
	stock, err := table.New[int](idem.NewMemoryStore(idem.MemoryConfig{}), "stock")
	if err != nil {
		fmt.Println(err)
		return
	}
	row, err := stock.Insert(ctx, "chairs", 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	sell := func(seen table.Row[int], count int) {
		for {
			changed, err := stock.Update(ctx, seen.ID, seen.Version, seen.Value-count)
			var conflict *table.ConflictError[int]
			switch {
			case errors.As(err, &conflict):
				fmt.Println("it is", conflict.Row.Value, "meanwhile")
				seen = conflict.Row
				continue
			case err != nil:
				fmt.Println(err)
			default:
				fmt.Println("left:", changed.Value)
			}
			return
		}
	}
	sell(row, 3)
	sell(row, 4)

	// Output:
	// left: 7
	// it is 7 meanwhile
	// left: 3
}

// No two rows have the same value in the unique column.
func ExampleWithUnique() {
	ctx := context.Background()
	orders, err := table.New[order](idem.NewMemoryStore(idem.MemoryConfig{}), "orders",
		table.WithUnique("receipt", func(o order) string { return o.Receipt }))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := orders.Insert(ctx, "o-1", order{"a chair", "r-7"}); err != nil {
		fmt.Println(err)
		return
	}
	_, err = orders.Insert(ctx, "o-2", order{"a table", "r-7"})
	fmt.Println(err)
	row, err := orders.GetBy(ctx, "r-7")
	fmt.Println(row.ID, err)

	// Output:
	// insert "orders/o-2": its receipt is taken by row "o-1"
	// o-1 <nil>
}

// An import reports what it could not take.
func ExampleTable_Import() {
	ctx := context.Background()
	orders, err := table.New[order](idem.NewMemoryStore(idem.MemoryConfig{}), "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range []string{"a chair", "a table"} {
		report, err := orders.Import(ctx, maps.All(map[string]order{"o-1": {Item: item}}))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("inserted:", report.Inserted)
		for _, d := range report.Duplicates {
			fmt.Println(d.ID, "is there with another", d.Differ)
		}
	}

	// Output:
	// inserted: 1
	// inserted: 0
	// o-1 is there with another [Item]
}
