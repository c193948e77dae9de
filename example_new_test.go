package idem_test

import (
	"context"
	"fmt"

	"github.com/idembolt/idem"
)

// A guard on a store of the caller's choice, with defaults for all its calls.
func ExampleNew() {
	store := idem.NewMemoryStore(idem.MemoryConfig{MaxRecords: 100_000})
	defer store.Close()
	guard, err := idem.New(store, idem.WithPolicy(idem.Orders), idem.WithKind("order"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close() // the store stays open: it is the caller's

	key := idem.Key{Scope: "order", ID: "cart-7"}
	res, err := idem.Do(context.Background(), guard, key, nil, func(context.Context, *idem.Attempt) (int, error) {
		return 1001, nil
	})
	fmt.Println(res.Value, err)
	fmt.Println(res.Record.Kind, res.Record.ExpiresAt.Sub(res.Record.UpdatedAt))

	// Output:
	// 1001 <nil>
	// order 24h0m0s
}
