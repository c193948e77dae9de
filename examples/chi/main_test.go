package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/idemhttp"
)

const book = `{"item":"book"}`

// startService runs the command in the test, on a port of its own.
func startService(t *testing.T) string {
	t.Helper()
	db := filepath.Join(t.TempDir(), "orders.db")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context())) // until Cleanup, which waits
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"--listen", "127.0.0.1:0", "--db", db}, out)
		_ = out.Close() // for a run that ends before it listens
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

type answer struct {
	code   int
	status idemhttp.Status
	body   string
}

func (a answer) problem(t *testing.T) idemhttp.Problem {
	t.Helper()
	var p idemhttp.Problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p), a.body)
	return p
}

func request(t *testing.T, method, url, token, key, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set(idemhttp.HeaderKey, key)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, idemhttp.Status(resp.Header.Get(idemhttp.HeaderStatus)), strings.TrimSpace(string(got))}
}

func TestRepeatIsReplayed(t *testing.T) {
	t.Parallel()
	url := startService(t) + "/v1/orders"
	const placed, shipped = `{"id":1,"item":"book","state":"placed"}`, `{"id":1,"item":"book","state":"shipped"}`
	for _, status := range []idemhttp.Status{idemhttp.StatusExecuted, idemhttp.StatusReplayed} {
		require.Equal(t, answer{201, status, placed}, request(t, http.MethodPost, url, "acme-token", "k-1", book))
		require.Equal(t, answer{200, status, shipped}, request(t, http.MethodPost, url+"/1/ship", "acme-token", "k-2", ""))
	}
	require.Equal(t, answer{409, "executed", "the order is shipped"}, request(t, http.MethodPost, url+"/1/ship", "acme-token", "k-3", ""))
	require.Equal(t, answer{200, "", shipped}, request(t, http.MethodGet, url+"/1", "acme-token", "", ""))
}

// TestMismatchNamesTheRoute also tells two routes of a group from two orders of a
// route: without the pattern both would be a mere "path".
func TestMismatchNamesTheRoute(t *testing.T) {
	t.Parallel()
	url := startService(t) + "/v1/orders"
	require.Equal(t, http.StatusCreated, request(t, http.MethodPost, url, "acme-token", "k-1", book).code)
	require.Equal(t, http.StatusCreated, request(t, http.MethodPost, url, "acme-token", "k-2", book).code)
	require.Equal(t, http.StatusOK, request(t, http.MethodPost, url+"/1/ship", "acme-token", "k-3", "").code)
	tests := []struct {
		name, key, path, body string
		parts                 []string
	}{
		{"another item", "k-1", "", `{"item":"pen"}`, []string{"/item"}},
		{"another route", "k-3", "/1/cancel", "", []string{"path", "route"}},
		{"another order", "k-3", "/2/ship", "", []string{"path"}},
		{"from With to Group", "k-1", "/1/cancel", book, []string{"path", "route"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := request(t, http.MethodPost, url+tt.path, "acme-token", tt.key, tt.body)
			require.Equal(t, http.StatusUnprocessableEntity, a.code)
			require.Equal(t, idemhttp.StatusMismatch, a.status)
			require.Equal(t, tt.parts, a.problem(t).Parts)
		})
	}
}

func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	url := startService(t) + "/v1/orders"
	require.Equal(t, `{"id":1,"item":"book","state":"placed"}`, request(t, http.MethodPost, url, "acme-token", "k-1", book).body)
	other := request(t, http.MethodPost, url, "globex-token", "k-1", book)
	require.Equal(t, answer{201, idemhttp.StatusExecuted, `{"id":2,"item":"book","state":"placed"}`}, other)
	require.Equal(t, http.StatusNotFound, request(t, http.MethodGet, url+"/1", "globex-token", "", "").code)
	require.Equal(t, answer{401, "", "unknown token"}, request(t, http.MethodPost, url, "", "k-1", book))
}

// TestMistypedPath: a path without a route does not get as far as the key.
func TestMistypedPath(t *testing.T) {
	t.Parallel()
	url := startService(t) + "/v1/orders"
	require.Equal(t, http.StatusNotFound, request(t, http.MethodPost, url+"/1/2/3", "acme-token", "k-1", book).code)
	a := request(t, http.MethodPost, url, "acme-token", "k-1", book)
	require.Equal(t, http.StatusCreated, a.code)
	require.Equal(t, idemhttp.StatusExecuted, a.status)
}
