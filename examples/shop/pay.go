package main

import (
	"context"
	"errors"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
	"github.com/idembolt/idem/saga"
)

var errCanceled = errors.New("the order was canceled")

type receipt struct {
	Charge string `json:"charge"`
	Amount int64  `json:"amount"`
}

// pay charges an order once. The money moves at the provider, which can take part in
// no transaction, so this is a Do of steps. An attempt that is cut off goes on after
// its last finished step when the customer asks again: the provider knows the child
// keys, so a step that was cut off itself may be repeated.
func (s *shop) pay(ctx context.Context, number string) (receipt, error) {
	policy := idem.Payments
	policy.OnInterrupted = idem.Rerun()
	key := idem.Key{Scope: "order.pay", ID: number}
	work := saga.Func(func(ctx context.Context, sg *saga.Saga) (receipt, error) {
		o, err := saga.Step(ctx, sg, "order", func(ctx context.Context) (order, error) { return s.payable(ctx, number) }, nil)
		if err != nil {
			return receipt{}, err
		}
		ask := func(op string) func(context.Context) (string, error) {
			return func(ctx context.Context) (string, error) {
				return s.provider.do(ctx, sg.Attempt().ChildKey(op), op, number, o.amount())
			}
		}
		undo := func(op string) func(context.Context, string) error {
			return func(ctx context.Context, _ string) error {
				_, err := ask(op)(ctx)
				return err
			}
		}
		if _, err := saga.Step(ctx, sg, "authorize", ask("authorize"), undo("void")); err != nil {
			return receipt{}, err
		}
		charge, err := saga.Step(ctx, sg, "capture", ask("capture"), undo("refund"))
		if err != nil {
			return receipt{}, err
		}
		return receipt{Charge: charge, Amount: o.amount()}, s.paid(ctx, number)
	})
	res, err := idem.Do(ctx, s.guard, key, nil, work, idem.WithPolicy(policy))
	return res.Value, err
}

// payable returns the order, unless it was canceled. That is for paid to decide, but
// to look first spares most customers a charge and a refund. It is a step because an
// attempt that goes on must not see something else here than the one before it.
func (s *shop) payable(ctx context.Context, number string) (order, error) {
	row, err := s.orders.Get(ctx, number)
	if err != nil {
		return order{}, err
	}
	state, err := s.states.Get(ctx, number)
	if err == nil && state.State == "CANCELED" {
		err = idem.Permanent(errCanceled)
	}
	return row.Value, err
}

// paid is where payment and cancellation meet: the state machine lets one of them
// through. If it was the other one the money goes back.
func (s *shop) paid(ctx context.Context, number string) error {
	err := s.move(ctx, number, "PAID", "OrderPaid", nil)
	if errors.Is(err, fsm.ErrIllegal) {
		return idem.Permanent(errCanceled)
	}
	return err
}
