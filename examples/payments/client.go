package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

const (
	firstPause   = 100 * time.Millisecond
	slowestPause = 5 * time.Second
)

// pay pays an invoice. All its tries send one key, and so does the next run if
// this one is killed or gives up.
func pay(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("payments pay", flag.ContinueOnError)
	server := flags.String("server", "http://127.0.0.1:8080", "address of the service")
	db := flags.String("db", "client.db", "file that keeps the keys of invoices")
	apiKey := flags.String("api-key", "acme-key", "key of the account that pays")
	patience := flags.Duration("patience", time.Minute, "how long to try")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o, err := parseOrder(flags.Args())
	if err != nil {
		return err
	}
	store, err := idem.OpenTransient(ctx, *db, idem.BoltConfig{})
	if err != nil {
		return err
	}
	intents, err := idemhttp.NewIntents(store, "payments-api")
	if err != nil {
		return err
	}
	c := &client{
		http: &http.Client{Transport: idemhttp.NewTransport(nil), Timeout: 30 * time.Second},
		url:  *server + "/charges", apiKey: *apiKey, patience: *patience, notes: os.Stderr,
	}
	return c.pay(ctx, intents, o, out)
}

func parseOrder(args []string) (order, error) {
	if len(args) != 3 {
		return order{}, errors.New("name the invoice, the amount in cents and the currency")
	}
	amount, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return order{}, fmt.Errorf("the amount: %w", err)
	}
	o := order{Invoice: args[0], Amount: amount, Currency: args[2]}
	return o, o.validate()
}

type client struct {
	http     *http.Client
	url      string
	apiKey   string
	patience time.Duration
	notes    io.Writer // why it tries again
}

// pay ends the intent after a refusal: the next run is a new try, with a new key.
// A paid invoice stays begun, so that a second run gets the answer of the first
// for as long as the service keeps it. Whatever else was answered, the invoice
// may be paid, and a new key could pay it again.
func (c *client) pay(ctx context.Context, intents *idemhttp.Intents, o order, out io.Writer) error {
	intent, err := intents.Begin(ctx, o.Invoice)
	if err != nil {
		return err
	}
	r, err := c.send(idemhttp.WithIntent(ctx, intent), o)
	if err != nil {
		return fmt.Errorf("it is not known whether %s is paid, run it again: %w", o.Invoice, err)
	}
	switch r.verdict() {
	case paid:
		_, err = fmt.Fprintf(out, "%s is paid%s: %s", o.Invoice, r.origin(), r.body)
		return err
	case refused:
		return errors.Join(r.error(), intent.Done(ctx))
	default:
		return fmt.Errorf("%s needs somebody to look: %w", o.Invoice, r.error())
	}
}

// send tries until there is an answer that stays. The context holds the key, so
// every try sends it.
func (c *client) send(ctx context.Context, o order) (reply, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, slowestPause) {
		r, err := c.post(ctx, body)
		if err == nil && r.verdict() != unsettled {
			return r, nil
		}
		if err == nil {
			err = r.error()
		}
		// Clients that lost one service should not all come back at once.
		wait := max(pause/2+rand.N(pause/2), r.retryAfter)
		fmt.Fprintf(c.notes, "trying again in %s: %v\n", wait.Round(time.Millisecond), err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return reply{}, err
		}
	}
}

// post is one try. An error leaves open whether the request got through.
func (c *client) post(ctx context.Context, body []byte) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.apiKey)
	resp, err := c.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	return readReply(resp)
}
