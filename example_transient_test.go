package idem_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/idembolt/idem"
)

// Short-lived processes share a file without holding it while they work.
func ExampleOpenTransient() {
	dir, err := os.MkdirTemp("", "idem")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, path := context.Background(), filepath.Join(dir, "jobs.db")

	for range 2 { // two runs of the same job
		store, err := idem.OpenTransient(ctx, path, idem.BoltConfig{})
		if err != nil {
			fmt.Println(err)
			return
		}
		guard, err := idem.New(store)
		if err != nil {
			fmt.Println(err)
			return
		}
		key := idem.Key{Scope: "job", ID: "nightly-2026-11-30"}
		res, err := idem.Do(ctx, guard, key, nil, func(context.Context, *idem.Attempt) (string, error) {
			return "backed up 17 tables", nil
		})
		fmt.Println(res.Value, res.Replayed, err)
	}

	// Output:
	// backed up 17 tables false <nil>
	// backed up 17 tables true <nil>
}
