package idem_test

import (
	"context"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

// Open starts a janitor by itself; on a store of one's own it is started by hand.
func ExampleStartJanitor() {
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	defer store.Close()
	ctx := context.Background()
	rec := idem.Record{
		Key: idem.Key{Scope: "import", ID: "old"}, State: idem.Completed, ExpiresAt: store.Now().Add(time.Millisecond),
	}
	if _, err := store.Create(ctx, rec); err != nil {
		fmt.Println(err)
		return
	}

	removed := make(chan int, 1)
	janitor, err := idem.StartJanitor(store, idem.JanitorConfig{
		Interval: 5 * time.Millisecond,
		OnRound: func(n int, _ error) {
			if n > 0 {
				removed <- n
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("removed", <-removed)
	fmt.Println(janitor.Close())

	// Output:
	// removed 1
	// <nil>
}
