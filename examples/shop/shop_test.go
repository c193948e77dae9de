package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
	"github.com/idembolt/idem/token"
)

// openShop is a shop in the test, with 20 of every item and without a relay.
func openShop(t *testing.T) (*shop, string) {
	t.Helper()
	dir := t.TempDir()
	p, err := openProvider(filepath.Join(dir, "provider.jsonl"), 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.close()) })
	guard, err := idem.Open(filepath.Join(dir, "shop.db"), idem.WithLogger(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, guard.Close()) })
	s, err := newShop(guard, guard.Store().(*idem.BoltStore), p)
	require.NoError(t, err)
	require.NoError(t, s.stockUp(t.Context(), 20))
	handler, err := s.handler()
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return s, server.URL
}

type got struct {
	status int
	body   string
}

var stay = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func do(t *testing.T, req *http.Request) got {
	t.Helper()
	resp, err := stay.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return got{resp.StatusCode, strings.TrimSpace(string(body))}
}

func place(t *testing.T, url, key, body string) got {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/orders", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(idemhttp.HeaderKey, key)
	return do(t, req)
}

func post(t *testing.T, url string) got {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	require.NoError(t, err)
	return do(t, req)
}

func stockOf(t *testing.T, s *shop, item string) (n int64) {
	t.Helper()
	require.NoError(t, s.store.Update(t.Context(), func(tx *idem.Tx) (err error) {
		n, err = add(tx.Bucket("stock"), item, 0)
		return err
	}))
	return n
}

func TestOrder(t *testing.T) {
	t.Parallel()
	s, url := openShop(t)
	two := `{"number":"o-1","item":"lamp","quantity":2}`
	tests := []struct {
		name, key, body string
		want            got
		left            int64
	}{
		{"placed", "k-1", two, got{201, two}, 18},
		{"same key", "k-1", two, got{201, two}, 18},
		{"same number, another key", "k-2", two, got{201, two}, 18},
		{"same number, another order", "k-3", `{"number":"o-1","item":"lamp","quantity":3}`, got{422, "the number belongs to another order"}, 18},
		{"sold out", "k-4", `{"number":"o-2","item":"lamp","quantity":19}`, got{409, "not enough in stock"}, 18},
		{"sold out again", "k-5", `{"number":"o-2","item":"lamp","quantity":19}`, got{409, "not enough in stock"}, 18},
		{"the rest", "k-6", `{"number":"o-3","item":"lamp","quantity":18}`, got{201, `{"number":"o-3","item":"lamp","quantity":18}`}, 0},
		{"no such item", "k-7", `{"number":"o-4","item":"sofa","quantity":1}`, got{400, `no such item: "sofa"`}, 0},
		{"no number", "k-8", `{"item":"lamp","quantity":1}`, got{400, "the number must have 1 to 100 bytes"}, 0},
	}
	for _, tt := range tests { // one after the other, on one shop
		require.Equal(t, tt.want, place(t, url, tt.key, tt.body), tt.name)
		require.Equal(t, tt.left, stockOf(t, s, "lamp"), tt.name)
	}
}

// TestForgotten: the row is there when the record of the key is not any more.
func TestForgotten(t *testing.T) {
	t.Parallel()
	s, url := openShop(t)
	two := `{"number":"o-1","item":"lamp","quantity":2}`
	require.Equal(t, got{201, two}, place(t, url, "k-1", two))
	tests := []struct {
		key, body string
		want      got
	}{
		{"k-2", `{"number":"o-1","item":"lamp","quantity":3}`, got{422, "the number belongs to another order"}},
		{"k-3", two, got{201, two}},
	}
	rec, err := s.store.Get(t.Context(), idem.Key{Scope: "order.place", ID: "o-1"})
	require.NoError(t, err)
	require.NoError(t, s.store.Delete(t.Context(), rec.Key, rec.Version))
	for _, tt := range tests { // one after the other, on one shop
		require.Equal(t, tt.want, place(t, url, tt.key, tt.body))
		require.Equal(t, int64(18), stockOf(t, s, "lamp"))
	}
}

var fields = regexp.MustCompile(`name="([a-z_]+)" value="([^"]*)"`)

// readForm loads a form and returns what it sends.
func readForm(t *testing.T, base string) url.Values {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/order", nil)
	require.NoError(t, err)
	page := do(t, req)
	require.Equal(t, http.StatusOK, page.status)
	form := url.Values{"item": {"chair"}}
	for _, field := range fields.FindAllStringSubmatch(page.body, -1) {
		form.Set(field[1], field[2])
	}
	require.Len(t, form.Get(token.FormField), 32)
	return form
}

func submit(t *testing.T, base string, form url.Values) got {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/order", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return do(t, req)
}

func TestForm(t *testing.T) {
	t.Parallel()
	s, base := openShop(t)
	form := readForm(t, base)
	for range 3 {
		require.Equal(t, http.StatusSeeOther, submit(t, base, form).status)
		require.Equal(t, int64(19), stockOf(t, s, "chair"))
	}
	altered := url.Values{"number": {"other"}, "item": {"chair"}, "quantity": {"1"}, token.FormField: form[token.FormField]}
	require.Equal(t, got{409, "load the form again"}, submit(t, base, altered))

	// What could not be placed has not used up its token.
	form = readForm(t, base)
	value := form.Get(token.FormField)
	form.Set("quantity", "20")
	for range 2 {
		require.Equal(t, got{409, "not enough in stock"}, submit(t, base, form))
	}
	status, err := s.forms.Inspect(t.Context(), value)
	require.NoError(t, err)
	require.Equal(t, token.Open, status.State)
	require.Equal(t, int64(19), stockOf(t, s, "chair"))
}

func TestStates(t *testing.T) {
	t.Parallel()
	s, url := openShop(t)
	for _, number := range []string{"o-1", "o-2"} {
		require.Equal(t, 201, place(t, url, number, `{"number":"`+number+`","item":"lamp","quantity":1}`).status)
	}
	tests := []struct {
		path string
		want got
	}{
		{"o-1/ship", got{409, "the order is PLACED"}},
		{"o-1/pay", got{200, `{"charge":"m-2","amount":1999}`}},
		{"o-1/pay", got{200, `{"charge":"m-2","amount":1999}`}},
		{"o-1/cancel", got{409, "the order is PAID"}},
		{"o-1/ship", got{200, `{"item":"lamp","number":"o-1","quantity":1,"state":"SHIPPED"}`}},
		{"o-1/ship", got{200, `{"item":"lamp","number":"o-1","quantity":1,"state":"SHIPPED"}`}},
		{"o-2/cancel", got{200, `{"item":"lamp","number":"o-2","quantity":1,"state":"CANCELED"}`}},
		{"o-2/cancel", got{200, `{"item":"lamp","number":"o-2","quantity":1,"state":"CANCELED"}`}},
		{"o-2/pay", got{409, "the order was canceled"}},
		{"o-2/pay", got{409, "the order was canceled"}},
	}
	for _, tt := range tests { // one after the other, on one shop
		require.Equal(t, tt.want, post(t, url+"/orders/"+tt.path), tt.path)
	}
	require.Equal(t, 404, post(t, url+"/orders/o-3/pay").status)
	require.Equal(t, int64(19), stockOf(t, s, "lamp"))
	require.Len(t, s.provider.made, 2)
}
