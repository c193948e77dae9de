package idem_test

import (
	"context"
	"fmt"

	"github.com/idembolt/idem"
)

// A tool reads a stored result by the key's text form.
func ExampleDecodeValue() {
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	defer store.Close()
	guard, err := idem.New(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	type receipt struct{ Number string }
	ctx := context.Background()
	_, err = idem.Do(ctx, guard, idem.Key{Scope: "charge", ID: "o-1"}, nil, func(context.Context, *idem.Attempt) (receipt, error) {
		return receipt{"R-7"}, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	key, err := idem.ParseKey("charge/o-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	rec, err := store.Get(ctx, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := idem.DecodeValue[receipt](rec)
	fmt.Println(got.Number, err)

	// Output:
	// R-7 <nil>
}
