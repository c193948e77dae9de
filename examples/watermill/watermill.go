package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/inbox"
	"github.com/idembolt/idem/outbox"
)

// publishTo is the relay's publisher. The message has the event's id, by which
// repeats are known.
func publishTo(publisher message.Publisher) func(context.Context, outbox.Event) error {
	return func(ctx context.Context, e outbox.Event) error {
		msg := message.NewMessage(e.ID, e.Payload)
		msg.SetContext(ctx)
		for name, value := range e.Headers {
			msg.Metadata.Set(name, value)
		}
		msg.Metadata.Set("type", e.Type)
		return publisher.Publish(topic, msg)
	}
}

// once is a handler for a router: nil acknowledges a message, an error has it
// delivered again.
func once(in *inbox.Inbox, handle func(context.Context, *idem.Tx, *message.Message) error) message.NoPublishHandlerFunc {
	return func(msg *message.Message) error {
		_, err := in.Handle(msg.Context(), inbox.ID(msg.UUID), func(ctx context.Context, tx *idem.Tx) error {
			return handle(ctx, tx, msg)
		})
		if errors.Is(err, idem.ErrFailed) {
			return nil // for good: another delivery changes nothing. Here a dead letter could be written
		}
		return err
	}
}

// bill adds the order to the total.
func bill(_ context.Context, tx *idem.Tx, msg *message.Message) error {
	var o order
	if err := json.Unmarshal(msg.Payload, &o); err != nil {
		return idem.Permanent(err)
	}
	b := tx.Bucket("billing")
	before, err := b.Get([]byte("total"))
	if err != nil {
		return err
	}
	total, _ := strconv.Atoi(string(before))
	return b.Put([]byte("total"), strconv.AppendInt(nil, int64(total+o.Amount), 10))
}

func billed(ctx context.Context, store *idem.BoltStore) (total string, err error) {
	err = store.View(ctx, func(tx *idem.Tx) error {
		value, err := tx.Bucket("billing").Get([]byte("total"))
		total = string(value)
		return err
	})
	return total, err
}
