// Command watermill places orders and bills each of them once:
//
//	go run . o-1=120 o-2=80
//
// An order and its event commit together. A relay hands the events to Watermill's
// in-process channel, and billing handles each message once. Run it again with the
// same orders, or kill it in the middle: the total stays right.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/inbox"
	"github.com/idembolt/idem/outbox"
)

const topic = "orders"

// order is the payload of an event.
type order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "watermill:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("watermill", flag.ContinueOnError)
	db := flags.String("db", "orders.db", "file of the orders and the bills")
	if err := flags.Parse(args); err != nil {
		return err
	}
	guard, err := idem.Open(*db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	store, err := guard.BoltStore()
	if err != nil {
		return err
	}
	events, err := outbox.New(store)
	if err != nil {
		return err
	}
	for _, arg := range flags.Args() {
		if err := place(ctx, guard, events, arg); err != nil {
			return err
		}
	}
	if err := deliver(ctx, guard, store, events); err != nil {
		return err
	}
	total, err := billed(ctx, store)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "billed:", total)
	return err
}

// place writes an order and its event, once per order.
func place(ctx context.Context, guard *idem.Guard, events *outbox.Outbox, arg string) error {
	id, amount, _ := strings.Cut(arg, "=")
	n, err := strconv.Atoi(amount)
	if err != nil {
		return fmt.Errorf("an order is written id=amount: %w", err)
	}
	payload, err := json.Marshal(order{id, n})
	if err != nil {
		return err
	}
	_, err = idem.DoTx(ctx, guard, idem.Key{Scope: "order", ID: id}, n, func(_ context.Context, tx *idem.Tx) (string, error) {
		if err := tx.Bucket("orders").Put([]byte(id), payload); err != nil {
			return "", err
		}
		return id, events.Append(tx, outbox.Event{AggregateType: "order", AggregateID: id, Type: "OrderPlaced", Payload: payload})
	})
	return err
}

// deliver relays and handles events until none is left.
func deliver(ctx context.Context, guard *idem.Guard, store *idem.BoltStore, events *outbox.Outbox) error {
	billing, err := inbox.New(guard, topic)
	if err != nil {
		return err
	}
	// The channel keeps nothing: an event has arrived when it is acknowledged.
	channel := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{})
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	router.AddConsumerHandler("billing", topic, channel, once(billing, bill))
	relay, err := outbox.NewRelay(events, publishTo(channel))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	routed, relayed := make(chan error, 1), make(chan error, 1)
	go func() { routed <- router.Run(ctx) }()
	<-router.Running()
	go func() { relayed <- relay.Run(ctx) }()
	err = untilEmpty(ctx, store, events)
	stop()
	return errors.Join(err, <-relayed, <-routed, channel.Close())
}

func untilEmpty(ctx context.Context, store *idem.BoltStore, events *outbox.Outbox) error {
	for {
		changed, stop := store.WatchBucket(outbox.DefaultBucket)
		stats, err := events.Stats(ctx)
		if err != nil || stats.Depth == 0 {
			stop()
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
	}
}
