package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/inbox"
)

func TestOrdersAreBilledOnce(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "orders.db")
	for _, tt := range []struct {
		orders []string
		says   string
	}{
		{[]string{"o-1=120", "o-2=80"}, "billed: 200\n"},
		{[]string{"o-1=120", "o-3=1"}, "billed: 201\n"}, // o-1 is there
		{nil, "billed: 201\n"},
	} {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), append([]string{"--db", db}, tt.orders...), &out))
		require.Equal(t, tt.says, out.String())
	}
	require.ErrorIs(t, run(t.Context(), []string{"--db", db, "o-1=121"}, &bytes.Buffer{}), idem.ErrMismatch)
	require.Error(t, run(t.Context(), []string{"--db", db, "o-1"}, &bytes.Buffer{}))
}

// TestRedelivery delivers messages again: after a failure, as a duplicate, and one
// that nobody can read.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	guard, err := idem.Open(filepath.Join(t.TempDir(), "orders.db"))
	require.NoError(t, err)
	defer guard.Close()
	in, err := inbox.New(guard, topic)
	require.NoError(t, err)
	channel := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{})
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	require.NoError(t, err)
	deliveries := 0
	router.AddConsumerHandler("billing", topic, channel, once(in, func(ctx context.Context, tx *idem.Tx, msg *message.Message) error {
		if deliveries++; deliveries == 1 {
			return errors.New("try again")
		}
		return bill(ctx, tx, msg)
	}))
	ended := make(chan error, 1)
	go func() { ended <- router.Run(t.Context()) }()
	<-router.Running()
	publish := func(id, payload string) {
		require.NoError(t, channel.Publish(topic, message.NewMessage(id, []byte(payload))))
	}
	publish("m-1", `{"id":"o-1","amount":100}`)
	require.Equal(t, 2, deliveries)
	publish("m-1", `{"id":"o-1","amount":100}`)
	require.Equal(t, 2, deliveries, "a duplicate does not run")
	publish("m-2", `no JSON`)
	publish("m-3", `{"id":"o-2","amount":11}`)
	total, err := billed(t.Context(), guard.Store().(*idem.BoltStore))
	require.NoError(t, err)
	require.Equal(t, "111", total)
	require.NoError(t, router.Close())
	require.NoError(t, <-ended)
}
