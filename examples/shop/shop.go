package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
	"github.com/idembolt/idem/outbox"
	"github.com/idembolt/idem/table"
	"github.com/idembolt/idem/token"
)

var (
	errSoldOut = errors.New("not enough in stock")
	errTaken   = errors.New("the number belongs to another order")
)

// order is what a customer asks for. It can be compared: a repeat asks for the same.
type order struct {
	Item     string `json:"item"`
	Quantity int64  `json:"quantity"`
}

// prices are in cents.
func prices() map[string]int64 { return map[string]int64{"chair": 4_999, "lamp": 1_999} }

func (o order) amount() int64 { return prices()[o.Item] * o.Quantity }

func (o order) validate(number string) error {
	switch {
	case len(number) == 0 || len(number) > 100: // it is a part of other names
		return errors.New("the number must have 1 to 100 bytes")
	case prices()[o.Item] == 0:
		return fmt.Errorf("no such item: %q", o.Item)
	case o.Quantity < 1 || o.Quantity > 1000:
		return errors.New("the quantity must be 1 to 1000")
	}
	return nil
}

// shop keeps everything in one file, so what belongs together commits together.
type shop struct {
	guard    *idem.Guard
	store    *idem.BoltStore
	orders   *table.Table[order]
	states   *fsm.Machine
	forms    *token.Tokens
	events   *outbox.Outbox
	provider *provider
}

func newShop(guard *idem.Guard, store *idem.BoltStore, p *provider) (*shop, error) {
	orders, err1 := table.New[order](store, "order.row")
	states, err2 := fsm.New(store, "order.state", fsm.Definition{
		Initial: "PLACED",
		Transitions: map[string][]string{
			"PLACED":   {"PAID", "CANCELED"},
			"PAID":     {"SHIPPED"},
			"SHIPPED":  nil,
			"CANCELED": nil,
		},
	})
	forms, err3 := token.New(store, "order.form")
	events, err4 := outbox.New(store)
	s := &shop{guard: guard, store: store, orders: orders, states: states, forms: forms, events: events, provider: p}
	return s, errors.Join(err1, err2, err3, err4)
}

// stockUp puts n of every item that the shop never had into its stock.
func (s *shop) stockUp(ctx context.Context, n int64) error {
	return s.store.Update(ctx, func(tx *idem.Tx) error {
		stock := tx.Bucket("stock")
		for item := range prices() {
			have, err := stock.Get([]byte(item))
			if err != nil {
				return err
			}
			if have != nil {
				continue
			}
			if _, err := add(stock, item, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// place places an order: its row, its state, what it takes from the stock and the
// event that tells of it are there with the record of the key, or none of them is.
// What admit does in the transaction, which may be nil, belongs to it too.
func (s *shop) place(ctx context.Context, number string, o order, admit func(context.Context, *idem.Tx) error) error {
	key := idem.Key{Scope: "order.place", ID: number}
	_, err := idem.DoTx(ctx, s.guard, key, o, func(ctx context.Context, tx *idem.Tx) (order, error) {
		if admit != nil {
			if err := admit(ctx, tx); err != nil {
				return order{}, err
			}
		}
		row, err := s.orders.On(tx.Records()).Insert(ctx, number, o)
		switch {
		case err != nil:
			return order{}, err
		case row.Existing && row.Value != o:
			return order{}, errTaken // not stored: the number stays that of the row
		case row.Existing: // rows are kept for longer than the records of keys
			return row.Value, nil
		}
		left, err := add(tx.Bucket("stock"), o.Item, -o.Quantity)
		switch {
		case err != nil:
			return order{}, err
		case left < 0: // kept is the failure, of what was written nothing
			return order{}, idem.Permanent(errSoldOut)
		}
		if _, err := s.states.On(tx.Records()).Start(ctx, number); err != nil {
			return order{}, err
		}
		return o, s.announce(tx, "OrderPlaced", number, o)
	})
	return err
}

func (s *shop) ship(ctx context.Context, number string) error {
	return s.move(ctx, number, "SHIPPED", "OrderShipped", nil)
}

func (s *shop) cancel(ctx context.Context, number string) error {
	return s.move(ctx, number, "CANCELED", "OrderCanceled", func(tx *idem.Tx, o order) error {
		_, err := add(tx.Bucket("stock"), o.Item, o.Quantity)
		return err
	})
}

// move changes the state of an order, with the event that tells of it and what else
// belongs to it. The machine remembers what was done, so this needs no key of its
// own: whoever finds the change made has nothing to add.
func (s *shop) move(ctx context.Context, number, to, event string, also func(*idem.Tx, order) error) error {
	return s.store.Update(ctx, func(tx *idem.Tx) error {
		res, err := s.states.On(tx.Records()).Fire(ctx, number, to, nil)
		if err != nil || res.Outcome == fsm.Already {
			return err
		}
		row, err := s.orders.On(tx.Records()).Get(ctx, number)
		if err != nil {
			return err
		}
		if also != nil {
			if err := also(tx, row.Value); err != nil {
				return err
			}
		}
		return s.announce(tx, event, number, row.Value)
	})
}

// announce adds an event that is published when the transaction has committed. An
// order has each of them once, so its name can be made of the two.
func (s *shop) announce(tx *idem.Tx, event, number string, o order) error {
	payload, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return s.events.Append(tx, outbox.Event{
		ID: number + "." + event, AggregateType: "order", AggregateID: number, Type: event, Payload: payload,
	})
}

// add changes a number in a bucket, where what is not there is 0, and returns it.
func add(b *idem.Bucket, key string, n int64) (int64, error) {
	stored, err := b.Get([]byte(key))
	if err != nil {
		return 0, err
	}
	if stored != nil {
		have, err := strconv.ParseInt(string(stored), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", key, err)
		}
		n += have
	}
	return n, b.Put([]byte(key), strconv.AppendInt(nil, n, 10))
}
