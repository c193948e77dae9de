package idem_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/idembolt/idem"
)

// A store opened by hand can be looked into beside its guard.
func ExampleOpenBoltStore() {
	dir, err := os.MkdirTemp("", "idem")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := idem.OpenBoltStore(ctx, filepath.Join(dir, "orders.db"), idem.BoltConfig{LockTimeout: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	guard, err := idem.New(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"o-2", "o-1"} {
		_, err := idem.Do(ctx, guard, idem.Key{Scope: "order", ID: id}, nil, func(context.Context, *idem.Attempt) (int, error) {
			return 1, nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	for rec, err := range store.Scan(ctx, idem.Query{Prefix: "order/"}) {
		fmt.Println(rec.Key, rec.State, err)
	}

	// Output:
	// order/o-1 completed <nil>
	// order/o-2 completed <nil>
}
