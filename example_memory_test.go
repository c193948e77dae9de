package idem_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

// A store alone is compare-and-swap on one record per key.
func ExampleNewMemoryStore() {
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	defer store.Close()
	ctx := context.Background()

	rec := idem.Record{
		Key: idem.Key{Scope: "import", ID: "2026-11"}, State: idem.Completed,
		Value: []byte("done"), ExpiresAt: store.Now().Add(time.Hour),
	}
	first, err := store.Create(ctx, rec)
	fmt.Println(first.Version, err)
	found, err := store.Create(ctx, rec)
	fmt.Println(found.Version, errors.Is(err, idem.ErrConflict))
	fmt.Println(store.Delete(ctx, rec.Key, first.Version))

	// Output:
	// 1 <nil>
	// 1 true
	// <nil>
}
