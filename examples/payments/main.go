// Command payments is a payment service and a client for it, neither of which
// charges an invoice twice when the other one, or it itself, is killed:
//
//	payments serve --listen 127.0.0.1:8080 --db payments.db
//	payments pay --server http://127.0.0.1:8080 --db client.db invoice-0042 1200 EUR
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "serve":
		return serve(ctx, args[1:], out)
	case len(args) > 0 && args[0] == "pay":
		return pay(ctx, args[1:], out)
	}
	return errors.New("name a command, serve or pay; -h after it lists its flags")
}
