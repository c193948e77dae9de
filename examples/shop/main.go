// Command shop sells things: an order form, payments, events and what follows from
// them. Wherever it is killed, every order is placed, paid and told of once.
//
//	shop serve --listen 127.0.0.1:8080 --db shop.db
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
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || args[0] != "serve" {
		return errors.New("the command is serve; -h after it lists its flags")
	}
	return serve(ctx, args[1:], out)
}
