package idem_test

import (
	"context"
	"fmt"

	"github.com/idembolt/idem"
)

// A wrapped function reaches its attempt through the context.
func ExampleAttemptFrom() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	charge := idem.Func(guard, "charge", func(id string) string { return id }, func(ctx context.Context, _ string) (int, error) {
		a, ok := idem.AttemptFrom(ctx)
		if !ok {
			return 0, nil
		}
		fmt.Println(a.Key(), "attempt", a.Number())
		return a.Number(), nil
	})
	fmt.Println(charge(context.Background(), "o-1"))

	// Output:
	// charge/o-1 attempt 1
	// 1 <nil>
}
