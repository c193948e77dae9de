package saga_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/saga"
)

// The card is declined after the seat was reserved, so the seat is given back.
func ExampleFunc() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	book := saga.Func(func(ctx context.Context, s *saga.Saga) (string, error) {
		seat, err := saga.Step(ctx, s, "seat",
			func(context.Context) (string, error) { fmt.Println("reserve 12A"); return "12A", nil },
			func(_ context.Context, seat string) error { fmt.Println("release", seat); return nil })
		if err != nil {
			return "", err
		}
		_, err = saga.Step(ctx, s, "charge",
			func(context.Context) (string, error) { return "", idem.Permanent(errors.New("card declined")) },
			func(_ context.Context, charge string) error { fmt.Println("refund", charge); return nil })
		return seat, err
	})
	for range 2 {
		_, err := idem.Do(context.Background(), guard, idem.Key{Scope: "trip", ID: "t-1"}, nil, book)
		fmt.Println(err)
	}

	// Output:
	// reserve 12A
	// release 12A
	// card declined
	// "trip/t-1" failed before: card declined
}
