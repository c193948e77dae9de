package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/inbox"
)

// delivery is one of a broker that works like RabbitMQ.
type delivery struct {
	MessageID   string
	Body        string
	Redelivered bool
}

// broker delivers again what is not acknowledged.
type broker struct{ queue []delivery }

func (b *broker) consume(handle func(delivery) (ack bool)) {
	for len(b.queue) > 0 {
		d := b.queue[0]
		b.queue = b.queue[1:]
		if !handle(d) {
			d.Redelivered = true
			b.queue = append(b.queue, d)
		}
	}
}

// A consumer adds up payments. The broker delivers one of them twice, because an
// acknowledgement was lost, and the handler fails once.
func ExampleInbox_Handle() {
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	guard, err := idem.Open(filepath.Join(dir, "balances.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	payments, err := inbox.New(guard, "payments")
	if err != nil {
		log.Fatal(err)
	}

	failing := true
	balance := 0
	handle := func(d delivery) (ack bool) {
		outcome, err := payments.Handle(context.Background(), d.MessageID, func(_ context.Context, tx *idem.Tx) error {
			if d.MessageID == "m-2" && failing {
				failing = false
				return errors.New("try again")
			}
			amount, err := strconv.Atoi(d.Body)
			if err != nil {
				return idem.Permanent(err)
			}
			b := tx.Bucket("balances")
			before, err := b.Get([]byte("account"))
			if err != nil {
				return err
			}
			balance, _ = strconv.Atoi(string(before))
			balance += amount
			return b.Put([]byte("account"), strconv.AppendInt(nil, int64(balance), 10))
		})
		fmt.Println(d.MessageID, "redelivered:", d.Redelivered, "->", outcome, err)
		return err == nil || errors.Is(err, idem.ErrFailed) // else nack
	}
	rabbit := &broker{queue: []delivery{
		{MessageID: "m-1", Body: "100"}, {MessageID: "m-2", Body: "20"}, {MessageID: "m-1", Body: "100", Redelivered: true},
	}}
	rabbit.consume(handle)
	fmt.Println("balance:", balance)

	// Output:
	// m-1 redelivered: false -> handled <nil>
	// m-2 redelivered: false -> outcome(0) try again
	// m-1 redelivered: true -> duplicate <nil>
	// m-2 redelivered: true -> handled <nil>
	// balance: 120
}
