package idem_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// A failure that a retry cannot change is stored and replayed; any other error
// leaves the key free for the next try.
func ExamplePermanent() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	tries := []error{errors.New("connection refused"), idem.Permanent(errors.New("card declined"))}
	for range 3 {
		key := idem.Key{Scope: "charge", ID: "o-1"}
		_, err := idem.Do(context.Background(), guard, key, nil, func(context.Context, *idem.Attempt) (string, error) {
			next := tries[0]
			tries = tries[1:]
			return "", next
		})
		fmt.Println(err, "| stored:", errors.Is(err, idem.ErrFailed))
	}

	// Output:
	// connection refused | stored: false
	// card declined | stored: false
	// "charge/o-1" failed before: card declined | stored: true
}
