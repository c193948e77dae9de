package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/outbox"
)

// exampleStore opens a file that the returned function removes.
func exampleStore() (*idem.BoltStore, func()) {
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		log.Fatal(err)
	}
	store, err := idem.OpenBoltStore(context.Background(), filepath.Join(dir, "orders.db"), idem.BoltConfig{})
	if err != nil {
		log.Fatal(err)
	}
	return store, func() {
		if err := errors.Join(store.Close(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

// The order and its event commit together, once per key.
func ExampleOutbox_Append() {
	store, closeStore := exampleStore()
	defer closeStore()
	guard, err := idem.New(store)
	if err != nil {
		log.Fatal(err)
	}
	events, err := outbox.New(store)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	key := idem.Key{Scope: "order", ID: "request-17"}
	for range 2 { // a double click
		_, err = idem.DoTx(ctx, guard, key, nil, func(_ context.Context, tx *idem.Tx) (string, error) {
			if err := tx.Bucket("orders").Put([]byte("o-1"), []byte(`{"amount":120}`)); err != nil {
				return "", err
			}
			return "o-1", events.Append(tx, outbox.Event{
				AggregateType: "order", AggregateID: "o-1", Type: "OrderPlaced", Payload: []byte(`{"amount":120}`),
			})
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	waiting, err := events.List(ctx, 0, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range waiting {
		fmt.Println(e.Number, e.Event.Type, e.Event.AggregateID, string(e.Event.Payload))
	}

	// Output:
	// 1 OrderPlaced o-1 {"amount":120}
}

// A relay hands events to a broker until its context ends.
func ExampleRelay_Run() {
	store, closeStore := exampleStore()
	defer closeStore()
	events, err := outbox.New(store)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = store.Update(ctx, func(tx *idem.Tx) error {
		return events.Append(tx,
			outbox.Event{AggregateType: "order", AggregateID: "o-1", Type: "OrderPlaced"},
			outbox.Event{AggregateType: "order", AggregateID: "o-1", Type: "OrderPaid"},
		)
	})
	if err != nil {
		log.Fatal(err)
	}

	brokerDown := true
	relay, err := outbox.NewRelay(events, func(_ context.Context, e outbox.Event) error {
		if brokerDown {
			brokerDown = false
			return outbox.Unavailable(errors.New("connection refused")) // tried again, not counted
		}
		fmt.Println("publish", e.Type)
		if e.Type == "OrderPaid" {
			stop()
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := relay.Run(ctx); err != nil {
		log.Fatal(err)
	}
	stats, err := events.Stats(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("waiting:", stats.Depth, "published:", stats.Published)

	// Output:
	// publish OrderPlaced
	// publish OrderPaid
	// waiting: 0 published: 2
}

// An event that its publisher cannot digest is parked. When the cause is mended it
// is put back.
func ExampleOutbox_Retry() {
	store, closeStore := exampleStore()
	defer closeStore()
	events, err := outbox.New(store)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	err = store.Update(ctx, func(tx *idem.Tx) error {
		return events.Append(tx,
			outbox.Event{ID: "e-1", AggregateType: "order", AggregateID: "o-1", Type: "OrderPlaced"},
			outbox.Event{ID: "e-2", AggregateType: "order", AggregateID: "o-1", Type: "OrderPaid"},
		)
	})
	if err != nil {
		log.Fatal(err)
	}
	mended := false
	publishAll := func() {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		relay, err := outbox.NewRelay(events, func(_ context.Context, e outbox.Event) error {
			if e.ID == "e-1" && !mended {
				return errors.New("no route")
			}
			fmt.Println("publish", e.ID)
			stop() // there is no more
			return nil
		}, outbox.WithMaxAttempts(1))
		if err != nil {
			log.Fatal(err)
		}
		if err := relay.Run(ctx); err != nil {
			log.Fatal(err)
		}
	}
	publishAll()
	for parked, err := range events.Parked(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("parked", parked.Event.ID, "after", parked.Attempts, "attempt:", parked.Error)
	}
	mended = true
	if err := events.Retry(ctx, "e-1"); err != nil {
		log.Fatal(err)
	}
	publishAll()

	// Output:
	// publish e-2
	// parked e-1 after 1 attempt: no route
	// publish e-1
}
