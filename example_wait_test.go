package idem_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/idembolt/idem"
)

// Calls that come while the first one runs wait for its result.
func ExampleWithWait() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}), idem.WithWait(idem.UntilDeadline))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()

	var callers, came sync.WaitGroup
	came.Add(3)
	for range 3 {
		callers.Go(func() {
			came.Done()
			key := idem.Key{Scope: "report", ID: "2026-11"}
			res, err := idem.Do(context.Background(), guard, key, nil, func(context.Context, *idem.Attempt) (string, error) {
				came.Wait()
				return "42 pages", nil
			})
			fmt.Println(res.Value, err)
		})
	}
	callers.Wait()
	fmt.Println("runs:", guard.Counters().Executed)

	// Output:
	// 42 pages <nil>
	// 42 pages <nil>
	// 42 pages <nil>
	// runs: 1
}
