package idem_test

import (
	"context"
	"fmt"

	"github.com/idembolt/idem"
)

// An observer feeds metrics; the guard's own counters need none.
func ExampleWithObserver() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}),
		idem.WithObserver(func(e idem.Event) { fmt.Println(e.Kind, e.Key, e.Parts) }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	for _, cents := range []int{100, 100, 200} {
		input := map[string]int{"cents": cents}
		_, _ = idem.Do(context.Background(), guard, idem.Key{Scope: "charge", ID: "o-1"}, input,
			func(context.Context, *idem.Attempt) (string, error) { return "receipt-1", nil })
	}
	fmt.Println(guard.Counters().HitRate())

	// Output:
	// executed charge/o-1 []
	// replayed charge/o-1 []
	// mismatch charge/o-1 [cents]
	// 0.5
}
