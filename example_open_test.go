package idem_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/idembolt/idem"
)

// Records are on disk: a repeat is answered after a restart too.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "idem")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	for range 2 { // the second turn is the restarted service
		guard, err := idem.Open(filepath.Join(dir, "payments.db"), idem.WithPolicy(idem.Payments))
		if err != nil {
			fmt.Println(err)
			return
		}
		key := idem.Key{Scope: "charge", ID: "o-1"}
		res, err := idem.Do(context.Background(), guard, key, nil, func(context.Context, *idem.Attempt) (string, error) {
			return "receipt-1", nil
		})
		fmt.Println(res.Value, res.Replayed, err)
		if err := guard.Close(); err != nil {
			fmt.Println(err)
		}
	}

	// Output:
	// receipt-1 false <nil>
	// receipt-1 true <nil>
}
