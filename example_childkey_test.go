package idem_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// Every attempt sends the same idempotency key to the other system.
func ExampleAttempt_ChildKey() {
	policy := idem.API
	policy.OnInterrupted = idem.Rerun()
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}), idem.WithPolicy(policy))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	for range 2 {
		key := idem.Key{Scope: "charge", ID: "order-1"}
		_, _ = idem.Do(context.Background(), guard, key, nil, func(_ context.Context, a *idem.Attempt) (string, error) {
			fmt.Println(a.Number(), a.ChildKey("provider"))
			return "", idem.Unknown(errors.New("no answer"))
		})
	}

	// Output:
	// 1 6bab415c6b83ec1af0c1241e709d2c07
	// 2 6bab415c6b83ec1af0c1241e709d2c07
}
