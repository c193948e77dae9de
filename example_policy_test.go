package idem_test

import (
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

// A policy is a preset with what differs; a rule it breaks is named.
func ExamplePolicy() {
	policy := idem.Orders
	policy.Retention = 7 * 24 * time.Hour
	policy.OnInterrupted = idem.Rerun()
	fmt.Println(policy.Validate())

	policy.RetryWindow = 30 * 24 * time.Hour
	fmt.Println(policy.Validate())

	// Output:
	// <nil>
	// invalid policy: Retention must be longer than RetryWindow (720h0m0s), it is 168h0m0s: a late retry would run again
}
