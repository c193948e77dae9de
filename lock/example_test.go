package lock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/lock"
)

// Two workers of a service must not write the same report at the same time.
func ExampleNew() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	locks, err := lock.New(guard, "reports")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	held, err := locks.Lock(ctx, "2026-11")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locks.TryLock(ctx, "2026-11")
	fmt.Println(errors.Is(err, lock.ErrHeld))

	fmt.Println(held.Unlock(ctx))
	again, err := locks.TryLock(ctx, "2026-11")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.Fence() > held.Fence())
	fmt.Println(again.Unlock(ctx))

	// Output:
	// true
	// <nil>
	// true
	// <nil>
}

// Work that takes long stops when the lock is lost.
func ExampleHeld_Lost() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	locks, err := lock.New(guard, "index")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	held, err := locks.Lock(ctx, "products")
	if err != nil {
		fmt.Println(err)
		return
	}
	documents := make(chan string, 2)
	documents <- "a"
	documents <- "b"
	close(documents)
	for more := true; more; {
		select {
		case <-held.Lost():
			fmt.Println("stopped:", held.Err())
			return
		case document, ok := <-documents:
			if more = ok; ok {
				fmt.Println("indexed", document)
			}
		}
	}
	fmt.Println(held.Unlock(ctx))

	// Output:
	// indexed a
	// indexed b
	// <nil>
}
