package idem_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/idembolt/idem"
)

// The order, its event and the record of the key commit together: once, or not at
// all.
func ExampleDoTx() {
	dir, err := os.MkdirTemp("", "idem")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	guard, err := idem.Open(filepath.Join(dir, "shop.db"), idem.WithPolicy(idem.Orders))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	place := func(_ context.Context, tx *idem.Tx) (string, error) {
		stock, err := tx.Bucket("stock").Get([]byte("lamp"))
		if err != nil {
			return "", err
		}
		if string(stock) == "sold out" {
			return "", idem.Permanent(fmt.Errorf("no lamps left"))
		}
		if err := tx.Bucket("stock").Put([]byte("lamp"), []byte("sold out")); err != nil {
			return "", err
		}
		return "placed", tx.Bucket("events").Append([]byte("lamp sold"))
	}
	for _, id := range []string{"o-1", "o-1", "o-2"} {
		res, err := idem.DoTx(context.Background(), guard, idem.Key{Scope: "order", ID: id}, nil, place)
		fmt.Printf("%s: %q replayed %t %v\n", id, res.Value, res.Replayed, err)
	}

	// Output:
	// o-1: "placed" replayed false <nil>
	// o-1: "placed" replayed true <nil>
	// o-2: "" replayed false no lamps left
}
