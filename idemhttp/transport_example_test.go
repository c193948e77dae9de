package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/idembolt/idem/idemhttp"
)

// flakyServer prints the key of every request and fails the first ones.
func flakyServer(failures int) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.Header.Get("Idempotency-Key"))
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
}

// The retries of a request share its context, and so its key.
func ExampleTransport() {
	server := flakyServer(1)
	defer server.Close()
	client := &http.Client{Transport: idemhttp.NewTransport(nil)}
	ctx := idemhttp.WithKey(context.Background(), "order-1042")

	for range 2 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("amount=120"))
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}

	// Output:
	// POST "order-1042"
	// 503
	// POST "order-1042"
	// 200
}

// A server with a header and a form of its own, and deletions that need a key.
func ExampleNewTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.Header.Get("X-Request-Id"))
	}))
	defer server.Close()
	client := &http.Client{Transport: idemhttp.NewTransport(nil,
		idemhttp.WithTransportHeader("X-Request-Id"),
		idemhttp.WithTransportUnquotedKeys(),
		idemhttp.WithTransportMethods(http.MethodPost, http.MethodDelete))}

	req, err := http.NewRequestWithContext(idemhttp.WithKey(context.Background(), "order-1042"), http.MethodDelete, server.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()

	// Output:
	// DELETE order-1042
}

// A random key is enough where nothing has to survive the process.
func ExampleWithRandomKey() {
	keys := make(map[string]bool)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys[r.Header.Get("Idempotency-Key")] = true
	}))
	client := &http.Client{Transport: idemhttp.NewTransport(nil)}
	ctx := idemhttp.WithRandomKey(context.Background())
	for range 3 { // a request and two retries
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	server.Close()
	fmt.Println(len(keys))

	// Output:
	// 1
}
