package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// A command that is run again until it gets through sends one key. The next
// intent of the name gets another.
func ExampleIntents() {
	dir, err := os.MkdirTemp("", "idemhttp")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	keys := make(map[string]int)
	failures := 2
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys[r.Header.Get("Idempotency-Key")]++
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))

	pay := func(ctx context.Context, invoice string) error { // one run of the command
		store, err := idem.OpenTransient(ctx, filepath.Join(dir, "intents.db"), idem.BoltConfig{})
		if err != nil {
			return err
		}
		intents, err := idemhttp.NewIntents(store, "billing-api")
		if err != nil {
			return err
		}
		intent, err := intents.Begin(ctx, invoice)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(idemhttp.WithIntent(ctx, intent), http.MethodPost, server.URL, nil)
		if err != nil {
			return err
		}
		client := &http.Client{Transport: idemhttp.NewTransport(nil)}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 500 {
			return fmt.Errorf("the server said %d", resp.StatusCode)
		}
		return intent.Done(ctx)
	}
	for range 4 {
		fmt.Println(pay(context.Background(), "invoice-0042"))
	}
	server.Close()
	fmt.Println(len(keys), "keys")

	// Output:
	// the server said 502
	// the server said 502
	// <nil>
	// <nil>
	// 2 keys
}

// Every request of an intent with several needs a key of its own.
func ExampleIntent_ChildKey() {
	intents, err := idemhttp.NewIntents(idem.NewMemoryStore(idem.MemoryConfig{}), "billing-api")
	if err != nil {
		fmt.Println(err)
		return
	}
	keys := make(map[string]bool)
	for range 2 { // two tries
		intent, err := intents.Begin(context.Background(), "order-1042")
		if err != nil {
			fmt.Println(err)
			return
		}
		keys[intent.ChildKey("charge")] = true
		keys[intent.ChildKey("ship")] = true
	}
	fmt.Println(len(keys), "keys")

	// Output:
	// 2 keys
}
