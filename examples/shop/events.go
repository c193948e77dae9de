package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/inbox"
	"github.com/idembolt/idem/outbox"
)

// consumer is a service that listens to the shop. What it does is in the same file
// here, for the want of a second one.
type consumer struct {
	inbox  *inbox.Inbox
	handle func(*idem.Tx, outbox.Event) error
}

// broker pretends to be a message broker. Real ones deliver at least once; this one
// delivers everything twice.
type broker []consumer

func newBroker(guard *idem.Guard) (broker, error) {
	var b broker
	for name, handle := range map[string]func(*idem.Tx, outbox.Event) error{"mailer": mail, "ledger": enter} {
		in, err := inbox.New(guard, name)
		if err != nil {
			return nil, err
		}
		b = append(b, consumer{inbox: in, handle: handle})
	}
	return b, nil
}

// publish is what the relay calls, and calls again after an error or a crash.
func (b broker) publish(ctx context.Context, e outbox.Event) error {
	for _, c := range b {
		for range 2 {
			// Handled or Duplicate: both are acknowledged.
			_, err := c.inbox.Handle(ctx, e.ID, func(_ context.Context, tx *idem.Tx) error { return c.handle(tx, e) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// mail counts the mails about an event, and would send one through an outbox of its
// own.
func mail(tx *idem.Tx, e outbox.Event) error {
	_, err := add(tx.Bucket("mails"), e.ID, 1)
	return err
}

// enter adds what was paid to the ledger.
func enter(tx *idem.Tx, e outbox.Event) error {
	if e.Type != "OrderPaid" {
		return nil
	}
	var o order
	if err := json.Unmarshal(e.Payload, &o); err != nil {
		return idem.Permanent(fmt.Errorf("event %s: %w", e.ID, err))
	}
	_, err := add(tx.Bucket("ledger"), e.AggregateID, o.amount())
	return err
}
