package idem_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// When the answer of the outside world is lost, nobody knows whether the work
// was done. The key stays closed until somebody finds out.
func ExampleUnknown() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	for range 2 {
		key := idem.Key{Scope: "charge", ID: "o-1"}
		_, err := idem.Do(context.Background(), guard, key, nil, func(context.Context, *idem.Attempt) (string, error) {
			fmt.Println("charging")
			return "", idem.Unknown(errors.New("connection reset after the request was sent"))
		})
		fmt.Println(errors.Is(err, idem.ErrInterrupted))
	}

	// Output:
	// charging
	// true
	// true
}
