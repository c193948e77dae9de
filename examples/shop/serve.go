package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/outbox"
)

// serve runs the shop until ctx ends.
func serve(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("shop serve", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "address to listen on")
	db := flags.String("db", "shop.db", "file that keeps the shop")
	money := flags.String("provider", "provider.jsonl", "file in which the pretended provider keeps what it did")
	delay := flags.Duration("provider-delay", 0, "how long the provider takes to answer, when it has done what it was asked")
	stock := flags.Int64("stock", 100, "how many of every item a new shop has")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p, err := openProvider(*money, *delay)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	guard, err := idem.Open(*db, idem.WithPolicy(idem.Orders), idem.WithWait(5*time.Second),
		idem.WithLogger(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	// Last: requests and the relay still need what it closes.
	defer func() { err = errors.Join(err, guard.Close()) }()
	store, err := guard.BoltStore()
	if err != nil {
		return err
	}
	s, err := newShop(guard, store, p)
	if err != nil {
		return err
	}
	if err := s.stockUp(ctx, *stock); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on http://%s\n", listener.Addr())
	return s.run(ctx, listener)
}

// run serves requests and relays events until ctx ends or one of them fails. Then it
// stops both in this order.
func (s *shop) run(ctx context.Context, listener net.Listener) error {
	handler, err1 := s.handler()
	broker, err2 := newBroker(s.guard)
	relay, err3 := outbox.NewRelay(s.events, broker.publish)
	if err := errors.Join(err1, err2, err3); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	relayCtx, stopRelay := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRelay()
	served, relayed := make(chan error, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	go func() { defer stop(); served <- server.Serve(listener) }()
	go func() { defer stop(); relayed <- relay.Run(relayCtx) }()
	<-ctx.Done()

	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	err := server.Shutdown(grace)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	stopRelay()
	return errors.Join(err, <-relayed)
}
