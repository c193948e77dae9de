package token_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

func TestStoreDown(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	tokens := newTokens(t, store)
	h, runs := protected(tokens)
	value := issue(t, tokens, "alice")
	require.NoError(t, store.Close())
	for _, a := range []answer{serve(h, submit(value)), serve(tokens.Handler(userOf), request(nil))} {
		require.Equal(t, http.StatusServiceUnavailable, a.status)
		require.Equal(t, token.ProblemUnavailable, a.problem(t))
		require.Equal(t, "5", a.header.Get("Retry-After"))
		require.NotContains(t, a.body, "closed")
	}
	require.Zero(t, runs.Load())
	_, err := tokens.Field(t.Context(), "alice")
	require.ErrorIs(t, err, idem.ErrClosed)
}

func TestHandler(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, newMemory(t))
	h := tokens.Handler(userOf)
	a := serve(h, request(nil))
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	var issued struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&issued))
	status, err := tokens.Inspect(t.Context(), issued.Token)
	require.NoError(t, err)
	require.Equal(t, status.ExpiresAt, issued.ExpiresAt)
	require.ErrorIs(t, tokens.Consume(t.Context(), issued.Token, "bob"), token.ErrSubject)
	require.NoError(t, tokens.Consume(t.Context(), issued.Token, "alice"))

	a = serve(h, httptest.NewRequest(http.MethodPost, "/", nil))
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Equal(t, token.ProblemSubject, a.problem(t))
	a = serve(h, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusMethodNotAllowed, a.status)
	require.Equal(t, token.ProblemMethod, a.problem(t))
	require.Equal(t, http.MethodPost, a.header.Get("Allow"))

	require.Equal(t, http.StatusOK, serve(tokens.Handler(nil), httptest.NewRequest(http.MethodPost, "/", nil)).status)
}

// TestConcurrentSubmits sends one form a hundred times to a server.
func TestConcurrentSubmits(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, newMemory(t))
	h, runs := protected(tokens)
	server := httptest.NewServer(h)
	defer server.Close()
	body := []byte(url.Values{token.FormField: {issue(t, tokens, "alice")}}.Encode())
	var created, conflicts atomic.Int32
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-User", "alice")
			req.Header.Set("Content-Type", urlencoded)
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
			switch resp.StatusCode {
			case http.StatusCreated:
				created.Add(1)
			case http.StatusConflict:
				conflicts.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, runs.Load())
	require.EqualValues(t, 1, created.Load())
	require.EqualValues(t, 99, conflicts.Load())
}
