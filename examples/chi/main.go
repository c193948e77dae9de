// Command chi is an order service on the router chi. Tell it the same thing
// twice and it does it once:
//
//	go run . --listen 127.0.0.1:8080
//	curl -i http://127.0.0.1:8080/v1/orders -H 'Authorization: Bearer acme-token' \
//		-H 'Content-Type: application/json' -H 'Idempotency-Key: try-1' -d '{"item":"book"}'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/idembolt/idem"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "chi:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. The server stops before the guard, on which its
// handlers work.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("chi", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "address to listen on")
	db := flags.String("db", "orders.db", "file that keeps the answers to requests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	guard, err := idem.Open(*db, idem.WithPolicy(idem.Orders))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	handler, err := newRouter(guard, map[string]string{"acme-token": "acme", "globex-token": "globex"})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	err = server.Shutdown(context.WithoutCancel(ctx))
	<-ended
	return err
}
