package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

const body = `{"invoice":"invoice-1","amount":1200,"currency":"EUR"}`

// troubled is a provider whose next charges and look-ups end as a test wants.
type troubled struct {
	*book
	asked   []string // the keys
	trouble func(key string, c charge) (charge, error)
	lookup  error
}

func (p *troubled) Charge(ctx context.Context, key string, c charge) (charge, error) {
	p.asked = append(p.asked, key)
	if p.trouble == nil {
		return p.book.Charge(ctx, key, c)
	}
	return p.trouble(key, c)
}

func (p *troubled) Find(ctx context.Context, reference string) (charge, error) {
	if p.lookup != nil {
		return charge{}, p.lookup
	}
	return p.book.Find(ctx, reference)
}

// startTroubled runs the service in the test, with a provider that fails.
func startTroubled(t *testing.T) (*troubled, *httptest.Server) {
	t.Helper()
	dir := t.TempDir()
	b, err := openBook(filepath.Join(dir, "charges.jsonl"), 0, log.New(io.Discard, "", 0))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	guard, err := idem.Open(filepath.Join(dir, "payments.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, guard.Close()) })
	p := &troubled{book: b}
	s := &service{provider: p, timeout: time.Minute, accounts: map[string]string{"a": "acme", "a2": "acme", "g": "globex"}}
	handler, err := s.handler(guard)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return p, server
}

type got struct {
	code   int
	status idemhttp.Status
	body   string
}

func request(t *testing.T, server *httptest.Server, method, path, apiKey, key, body string) (got, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+apiKey)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set(idemhttp.HeaderKey, key)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return got{resp.StatusCode, idemhttp.Status(resp.Header.Get(idemhttp.HeaderStatus)), strings.TrimSpace(string(answer))}, resp.Header
}

func post(t *testing.T, server *httptest.Server, apiKey, body string) got {
	t.Helper()
	g, _ := request(t, server, http.MethodPost, "/charges", apiKey, "k-1", body)
	return g
}

// TestStored: an answer that would be the same the next time is kept.
func TestStored(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		code       int
		answer     string
		asked      int
	}{
		{"charged", body, 201, `{"id":"ch-1","invoice":"invoice-1","amount":1200,"currency":"EUR"}`, 1},
		{"declined", `{"invoice":"i","amount":2000000,"currency":"EUR"}`, 422, "declined: over the limit of the card", 1},
		{"bad amount", `{"invoice":"i","amount":0,"currency":"EUR"}`, 400, "the amount must be positive", 0},
		{"bad currency", `{"invoice":"i","amount":1,"currency":"eur"}`, 400, "the currency must have three capital letters", 0},
		{"no JSON", `invoice`, 400, "the body is not an order: invalid character 'i' looking for beginning of value", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, server := startTroubled(t)
			require.Equal(t, got{tt.code, idemhttp.StatusExecuted, tt.answer}, post(t, server, "a", tt.body))
			require.Equal(t, got{tt.code, idemhttp.StatusReplayed, tt.answer}, post(t, server, "a", tt.body))
			require.Equal(t, got{tt.code, idemhttp.StatusReplayed, tt.answer}, post(t, server, "a2", tt.body)) // a new API key
			require.Len(t, p.asked, tt.asked)
		})
	}
}

func TestUnavailableFreesTheKey(t *testing.T) {
	t.Parallel()
	p, server := startTroubled(t)
	p.trouble = func(string, charge) (charge, error) { return charge{}, errUnavailable }
	require.Equal(t, http.StatusServiceUnavailable, post(t, server, "a", body).code)
	p.trouble = nil
	g := post(t, server, "a", body)
	require.Equal(t, http.StatusCreated, g.code)
	require.Equal(t, idemhttp.StatusExecuted, g.status)
}

// TestTimeout: what became of the charge is found out when the provider can be
// asked, and until then nothing is charged.
func TestTimeout(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		arrived bool
		status  idemhttp.Status
		asked   int
	}{
		{"charged", true, idemhttp.StatusReplayed, 1},
		{"not charged", false, idemhttp.StatusExecuted, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, server := startTroubled(t)
			p.trouble = func(key string, c charge) (charge, error) {
				if tt.arrived {
					if _, err := p.enter(key, c); err != nil {
						return charge{}, errUnavailable
					}
				}
				return charge{}, context.DeadlineExceeded
			}
			p.lookup = errors.New("no answer")
			g := post(t, server, "a", body)
			require.Equal(t, http.StatusGatewayTimeout, g.code)
			require.Equal(t, idemhttp.StatusInterrupted, g.status)
			for range 2 {
				g = post(t, server, "a", body)
				require.Equal(t, http.StatusConflict, g.code)
				require.Equal(t, idemhttp.StatusInterrupted, g.status)
				require.Contains(t, g.body, `"retryable":true`)
			}
			require.Len(t, p.asked, 1)

			p.trouble, p.lookup = nil, nil
			want := got{http.StatusCreated, tt.status, `{"id":"ch-1","invoice":"invoice-1","amount":1200,"currency":"EUR"}`}
			require.Equal(t, want, post(t, server, "a", body))
			require.Len(t, p.asked, tt.asked)
			require.Equal(t, p.asked[0], p.asked[len(p.asked)-1])
			require.Len(t, p.entries, 1)
		})
	}
}

func TestAccountsAreApart(t *testing.T) {
	t.Parallel()
	p, server := startTroubled(t)
	first, header := request(t, server, http.MethodPost, "/charges", "a", "k-1", body)
	require.Equal(t, http.StatusCreated, first.code)
	shown, _ := request(t, server, http.MethodGet, header.Get("Location"), "a", "", "")
	require.Equal(t, got{http.StatusOK, "", first.body}, shown)
	hidden, _ := request(t, server, http.MethodGet, header.Get("Location"), "g", "", "")
	require.Equal(t, http.StatusNotFound, hidden.code)
	stranger, _ := request(t, server, http.MethodPost, "/charges", "other", "k-1", body)
	require.Equal(t, http.StatusUnauthorized, stranger.code)

	second := post(t, server, "g", body) // the same key, of another account
	require.Equal(t, http.StatusCreated, second.code)
	require.Equal(t, idemhttp.StatusExecuted, second.status)
	require.Len(t, p.entries, 2)
	require.NotEqual(t, p.asked[0], p.asked[1])
}
