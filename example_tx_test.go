package idem_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/idembolt/idem"
)

// A service keeps its own data in the store's file.
func ExampleBoltStore_Update() {
	dir, err := os.MkdirTemp("", "idem")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := idem.OpenBoltStore(ctx, filepath.Join(dir, "app.db"), idem.BoltConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	err = store.Update(ctx, func(tx *idem.Tx) error {
		prices := tx.Bucket("prices")
		for _, item := range []string{"lamp", "chair"} {
			if err := prices.Put([]byte(item), []byte("19.99")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = store.View(ctx, func(tx *idem.Tx) error {
		for pair, err := range tx.Bucket("prices").Range(nil, nil) {
			if err != nil {
				return err
			}
			fmt.Printf("%s %s\n", pair.Key, pair.Value)
		}
		return nil
	})
	fmt.Println(err)

	// Output:
	// chair 19.99
	// lamp 19.99
	// <nil>
}
