package canonjson_test

import (
	"errors"
	"fmt"

	"github.com/idembolt/idem/internal/canonjson"
)

func ExampleCanonicalize() {
	for _, request := range []string{
		`{"currency": "EUR", "amount": 10.50}`,
		`{"amount":1.05e1,"currency":"\u0045UR"}`,
	} {
		canonical, err := canonjson.Canonicalize([]byte(request))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(canonical))
	}
	_, err := canonjson.Canonicalize([]byte(`{"amount":1,"amount":2}`))
	fmt.Println(errors.Is(err, canonjson.ErrDuplicateMember), err)
	// Output:
	// {"amount":10.5,"currency":"EUR"}
	// {"amount":10.5,"currency":"EUR"}
	// true canonjson: byte 12: duplicate member name
}

func ExampleMembers() {
	members, ok, err := canonjson.Members([]byte(`{"to": "alice", "amount": 10.0}`))
	if err != nil || !ok {
		fmt.Println(ok, err)
		return
	}
	for _, m := range members {
		fmt.Printf("%s = %s\n", m.Name, m.Value)
	}
	// Output:
	// amount = 10
	// to = "alice"
}
