package idem_test

import (
	"encoding/json"
	"fmt"

	"github.com/idembolt/idem"
)

// Two inputs are compared part by part, without keeping their content.
func ExampleNewFingerprint() {
	secret := []byte("sixteen or more random bytes")
	of := func(text string) idem.Fingerprint {
		fp, err := idem.NewFingerprint(secret, json.RawMessage(text))
		if err != nil {
			fmt.Println(err)
		}
		return fp
	}
	first := of(`{"amount": 100, "currency": "EUR"}`)
	fmt.Println(first.Names())
	fmt.Println(first.Equal(of(`{"currency":"\u0045UR","amount":1e2}`)))
	fmt.Println(first.Diff(of(`{"amount": 101, "currency": "EUR"}`)))

	// Output:
	// [amount currency]
	// true
	// [amount]
}
