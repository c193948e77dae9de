package idem_test

import (
	"context"
	"fmt"

	"github.com/idembolt/idem"
)

// One line makes a function idempotent.
func ExampleFunc() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	type invoice struct {
		Number string
		Cents  int
	}
	send := func(_ context.Context, in invoice) (string, error) {
		fmt.Println("sending", in.Number)
		return "sent to the customer", nil
	}
	sendOnce := idem.Func(guard, "invoice", func(in invoice) string { return in.Number }, send)

	for range 3 {
		fmt.Println(sendOnce(context.Background(), invoice{"2026-0042", 1999}))
	}

	// Output:
	// sending 2026-0042
	// sent to the customer <nil>
	// sent to the customer <nil>
	// sent to the customer <nil>
}
