package fsm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
)

// A repeat of a finished transition is a success; what is not declared is refused.
func ExampleMachine_Fire() {
	ctx := context.Background()
	orders, err := fsm.New(idem.NewMemoryStore(idem.MemoryConfig{}), "order-state", fsm.Definition{
		Initial: "PENDING",
		Transitions: map[string][]string{
			"PENDING":   {"PAID", "CANCELED"},
			"PAID":      {"COMPLETED"},
			"COMPLETED": nil,
			"CANCELED":  nil,
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := orders.Start(ctx, "o-1"); err != nil {
		fmt.Println(err)
		return
	}
	for _, to := range []string{"PAID", "PAID", "COMPLETED", "CANCELED"} {
		res, err := orders.Fire(ctx, "o-1", to, nil)
		var illegal *fsm.IllegalError
		switch {
		case errors.As(err, &illegal):
			fmt.Println(to, "refused, it is", illegal.From)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println(to, res.Outcome)
		}
	}

	// Output:
	// PAID applied
	// PAID already
	// COMPLETED applied
	// CANCELED refused, it is COMPLETED
}

// A definition with mistakes is refused with all of them.
func ExampleNew() {
	_, err := fsm.New(idem.NewMemoryStore(idem.MemoryConfig{}), "order-state", fsm.Definition{
		Initial:     "PENDING",
		Transitions: map[string][]string{"PENDING": {"PIAD"}, "PAID": nil},
	})
	fmt.Println(err)

	// Output:
	// invalid definition: state "PENDING": "PIAD" can follow it, but is not declared
	// invalid definition: state "PAID": nothing leads to it from "PENDING"
}

func ExampleMachine_Mermaid() {
	doors, err := fsm.New(idem.NewMemoryStore(idem.MemoryConfig{}), "doors", fsm.Definition{
		Initial:     "open",
		Transitions: map[string][]string{"open": {"closed"}, "closed": {"open"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(doors.Mermaid())

	// Output:
	// stateDiagram-v2
	//     direction LR
	//     state "open" as s0
	//     state "closed" as s1
	//     [*] --> s0
	//     s0 --> s1
	//     s1 --> s0
}
