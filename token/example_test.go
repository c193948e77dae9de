package token_test

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

func ExampleTokens_Consume() {
	tokens, err := token.New(idem.NewMemoryStore(idem.MemoryConfig{}), "order-form")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	issued, err := tokens.Issue(ctx, "alice")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(errors.Is(tokens.Consume(ctx, issued.Value, "bob"), token.ErrSubject))
	fmt.Println(tokens.Consume(ctx, issued.Value, "alice"))
	fmt.Println(errors.Is(tokens.Consume(ctx, issued.Value, "alice"), token.ErrUsed))

	// Output:
	// true
	// <nil>
	// true
}

// A form that is submitted twice is processed once.
func ExampleTokens_Field() {
	tokens, err := token.New(idem.NewMemoryStore(idem.MemoryConfig{}), "order-form")
	if err != nil {
		fmt.Println(err)
		return
	}
	page := template.Must(template.New("").Parse(
		`<form method="post">{{.Token}}<input name="amount"><button>Order</button></form>`))
	user := func(*http.Request) (string, error) { return "alice", nil } // from the session

	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		field, err := tokens.Field(r.Context(), "alice")
		if err != nil {
			http.Error(w, "try again later", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		_ = page.Execute(w, map[string]any{"Token": field})
	})
	mux.Handle("POST /orders", tokens.Protect(user)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("ordered for", r.PostFormValue("amount"))
		w.WriteHeader(http.StatusCreated)
	})))
	server := httptest.NewServer(mux)
	defer server.Close()

	html, err := get(server.URL + "/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	hidden := regexp.MustCompile(`name="idempotent_token" value="([^"]+)"`).FindStringSubmatch(html)
	form := url.Values{"idempotent_token": {hidden[1]}, "amount": {"120"}}
	for range 2 { // a double click
		resp, err := http.PostForm(server.URL+"/orders", form)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.StatusCode)
		resp.Body.Close()
	}

	// Output:
	// ordered for 120
	// 201
	// 409
}

func get(address string) (string, error) {
	resp, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// A program without forms fetches a token and sends it in a header.
func ExampleTokens_Handler() {
	tokens, err := token.New(idem.NewMemoryStore(idem.MemoryConfig{}), "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("POST /tokens", tokens.Handler(nil)) // nil: tokens are nobody's in particular
	mux.Handle("POST /orders", tokens.Protect(nil)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		fmt.Println("ordered")
	})))
	server := httptest.NewServer(mux)
	defer server.Close()

	resp, err := http.Post(server.URL+"/tokens", "", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		fmt.Println(err)
		return
	}
	value := regexp.MustCompile(`"token":"([^"]+)"`).FindStringSubmatch(string(body))[1]
	for range 2 {
		req, err := http.NewRequest(http.MethodPost, server.URL+"/orders", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set(token.Header, value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.StatusCode)
		resp.Body.Close()
	}

	// Output:
	// ordered
	// 200
	// 409
}

// The token is used exactly if the order is placed: both commit together.
func ExampleTokens_On() {
	dir, err := os.MkdirTemp("", "token")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := idem.OpenBoltStore(ctx, filepath.Join(dir, "orders.db"), idem.BoltConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	tokens, err := token.New(store, "order-form")
	if err != nil {
		fmt.Println(err)
		return
	}
	issued, err := tokens.Issue(ctx, "alice")
	if err != nil {
		fmt.Println(err)
		return
	}
	place := func(order string, soldOut bool) error {
		return store.Update(ctx, func(tx *idem.Tx) error {
			if err := tokens.On(tx.Records()).Consume(ctx, issued.Value, "alice"); err != nil {
				return err
			}
			if soldOut {
				return errors.New("sold out")
			}
			return tx.Bucket("orders").Append([]byte(order))
		})
	}
	fmt.Println(place("tea", true))
	fmt.Println(place("coffee", false))
	fmt.Println(errors.Is(place("coffee", false), token.ErrUsed))

	// Output:
	// sold out
	// <nil>
	// true
}
