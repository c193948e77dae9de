package idem_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// After an interruption the next call asks the provider what became of it.
func ExampleReconcile() {
	charges := make(map[string]string) // at the provider, by idempotency key
	policy := idem.Payments
	policy.OnInterrupted = idem.Reconcile(func(_ context.Context, rec idem.Record) (idem.Verdict, error) {
		if receipt, found := charges[rec.Key.ChildKey("provider")]; found {
			return idem.Done(receipt), nil
		}
		return idem.NotDone(), nil
	})
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}), idem.WithPolicy(policy))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	charge := func() (idem.Result[string], error) {
		key := idem.Key{Scope: "charge", ID: "o-1"}
		return idem.Do(context.Background(), guard, key, nil, func(_ context.Context, a *idem.Attempt) (string, error) {
			charges[a.ChildKey("provider")] = "receipt-1" // the request arrives, its answer does not
			return "", idem.Unknown(errors.New("timeout"))
		})
	}
	_, err = charge()
	fmt.Println(err)
	res, err := charge()
	fmt.Println(res.Value, res.Replayed, err)

	// Output:
	// attempt 1 of "charge/o-1" was interrupted, its outcome is unknown: timeout
	// receipt-1 true <nil>
}
