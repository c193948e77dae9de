package idem_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// For a function that cannot tell what its errors mean, no error is harmless.
func ExampleWithClassifier() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	cautious := idem.WithClassifier(func(err error) idem.Outcome {
		if o := idem.Classify(err); o != idem.OutcomeNothing {
			return o
		}
		return idem.OutcomeUnknown
	})
	_, err = idem.Do(context.Background(), guard, idem.Key{Scope: "legacy", ID: "1"}, nil,
		func(context.Context, *idem.Attempt) (string, error) { return "", errors.New("something went wrong") }, cautious)
	fmt.Println(errors.Is(err, idem.ErrInterrupted))

	// Output:
	// true
}
