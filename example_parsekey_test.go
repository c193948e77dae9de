package idem_test

import (
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

func ExampleParseKey() {
	key, err := idem.ParseKey("charge:tenant-7/order/42")
	fmt.Println(key.Scope, key.ID, err)

	_, err = idem.ParseKey("order-42")
	var bad *idem.KeyError
	fmt.Println(errors.As(err, &bad), bad.Reason)

	// Output:
	// charge:tenant-7 order/42 <nil>
	// true no-scope
}
