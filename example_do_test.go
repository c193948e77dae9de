package idem_test

import (
	"context"
	"fmt"

	"github.com/idembolt/idem"
)

// A retry with the same key gets the result of the first call.
func ExampleDo() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	type order struct {
		ID    string
		Cents int
	}
	charge := func(o order) {
		key := idem.Key{Scope: "charge", ID: o.ID}
		res, err := idem.Do(context.Background(), guard, key, o, func(context.Context, *idem.Attempt) (string, error) {
			fmt.Println("charging", o.Cents)
			return "receipt-1", nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Value, "replayed:", res.Replayed)
	}
	charge(order{"o-1", 1999})
	charge(order{"o-1", 1999})
	charge(order{"o-1", 2999})

	// Output:
	// charging 1999
	// receipt-1 replayed: false
	// receipt-1 replayed: true
	// "charge/o-1" was used with other content, different: ["Cents"]
}
