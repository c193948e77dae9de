package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/idembolt/idem"
)

// serve runs the service until ctx ends.
func serve(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("payments serve", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "address to listen on")
	db := flags.String("db", "payments.db", "file that keeps the answers to requests")
	charges := flags.String("charges", "charges.jsonl", "file in which the pretended provider keeps its charges")
	delay := flags.Duration("provider-delay", 0, "how long the provider takes to answer, when it has charged")
	timeout := flags.Duration("provider-timeout", 10*time.Second, "how long the service waits for that answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	book, err := openBook(*charges, *delay, log.New(out, "provider: ", 0))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	guard, err := idem.Open(*db, idem.WithLogger(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	// After the server: Close waits for the attempts of handlers, and what it
	// closes they still need.
	defer func() { err = errors.Join(err, guard.Close()) }()

	s := &service{
		provider: book, timeout: *timeout,
		accounts: map[string]string{"acme-key": "acme", "globex-key": "globex"},
	}
	handler, err := s.handler(guard)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return serveUntil(ctx, server, listener, *timeout+5*time.Second)
}

// serveUntil lets the requests that are being worked on end when ctx does. A
// grace longer than a handler takes leaves no attempt interrupted.
func serveUntil(ctx context.Context, server *http.Server, listener net.Listener, grace time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(ctx)
	<-ended
	return err
}
