// Command retryablehttp pays an invoice once, with go-retryablehttp in charge of
// the retries:
//
//	go run . --to http://127.0.0.1:8080/charges invoice-0042
//
// All its retries send one Idempotency-Key, and so does the next run if this one
// is killed or gives up. When it got through, the next run pays anew.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "retryablehttp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("retryablehttp", flag.ContinueOnError)
	db := flags.String("db", "intents.db", "file that keeps the keys of open intents")
	url := flags.String("to", "http://127.0.0.1:8080/charges", "where to post")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("name the invoice to pay")
	}
	store, err := idem.OpenTransient(ctx, *db, idem.BoltConfig{})
	if err != nil {
		return err
	}
	intents, err := idemhttp.NewIntents(store, "payments-api")
	if err != nil {
		return err
	}
	return pay(ctx, intents, newClient(), *url, flags.Arg(0), out)
}

// newClient puts the Transport below the retries, where it sees each of them.
// They share the context of the request, and so its key.
func newClient() *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.HTTPClient.Transport = idemhttp.NewTransport(client.HTTPClient.Transport)
	return client
}

// pay ends the intent when the server has answered. A refusal is an answer too;
// after anything else the intent stays open, and the next run tries again.
func pay(ctx context.Context, intents *idemhttp.Intents, client *retryablehttp.Client, url, invoice string, out io.Writer) error {
	intent, err := intents.Begin(ctx, invoice)
	if err != nil {
		return err
	}
	req, err := retryablehttp.NewRequestWithContext(idemhttp.WithIntent(ctx, intent), http.MethodPost, url, []byte("invoice="+invoice))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusConflict || resp.StatusCode >= 500 {
		return fmt.Errorf("the outcome is open, run it again: %s", resp.Status)
	}
	if err := intent.Done(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, resp.Status)
	return err
}
