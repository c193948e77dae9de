package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

type request struct{ key, body string }

// failing is a server that fails the first requests and notes all of them.
type failing struct {
	*httptest.Server
	mu       sync.Mutex
	failures int
	requests []request
}

func serveFailing(t *testing.T, failures int) *failing {
	t.Helper()
	s := &failing{failures: failures}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, request{r.Header.Get("Idempotency-Key"), string(body)})
		if s.failures--; s.failures >= 0 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func quickly(c *retryablehttp.Client, retries int) *retryablehttp.Client {
	c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = retries, time.Millisecond, time.Millisecond
	return c
}

func openIntents(t *testing.T, path string) *idemhttp.Intents {
	t.Helper()
	store, err := idem.OpenTransient(t.Context(), path, idem.BoltConfig{})
	require.NoError(t, err)
	intents, err := idemhttp.NewIntents(store, "payments-api")
	require.NoError(t, err)
	return intents
}

func TestRetriesSendOneKey(t *testing.T) {
	t.Parallel()
	server := serveFailing(t, 2)
	var out bytes.Buffer
	intents := openIntents(t, filepath.Join(t.TempDir(), "intents.db"))
	require.NoError(t, pay(t.Context(), intents, quickly(newClient(), 4), server.URL, "0042", &out))
	require.Equal(t, "200 OK\n", out.String())
	require.Len(t, server.requests, 3)
	require.Regexp(t, `^"[0-9a-f-]{36}"$`, server.requests[0].key)
	require.Equal(t, "invoice=0042", server.requests[0].body)
	require.Equal(t, server.requests[0], server.requests[1])
	require.Equal(t, server.requests[0], server.requests[2])
}

// TestNextRunSendsTheKey has a run give up, the next one get through, and a third
// one pay anew.
func TestNextRunSendsTheKey(t *testing.T) {
	t.Parallel()
	server := serveFailing(t, 2)
	path := filepath.Join(t.TempDir(), "intents.db")
	require.Error(t, pay(t.Context(), openIntents(t, path), quickly(newClient(), 1), server.URL, "0042", io.Discard))
	for range 2 {
		require.NoError(t, run(t.Context(), []string{"--db", path, "--to", server.URL, "0042"}, io.Discard))
	}
	require.Len(t, server.requests, 4)
	require.NotEmpty(t, server.requests[0].key)
	require.Equal(t, server.requests[0], server.requests[1])
	require.Equal(t, server.requests[0], server.requests[2])
	require.NotEqual(t, server.requests[2].key, server.requests[3].key)
}

// TestTransportAroundRetries is the other way to put them together: the retries
// are below the Transport, so even a random key per call does not change.
func TestTransportAroundRetries(t *testing.T) {
	t.Parallel()
	server := serveFailing(t, 2)
	retries := retryablehttp.NewClient()
	retries.Logger = nil
	base := &retryablehttp.RoundTripper{Client: quickly(retries, 4)}
	client := &http.Client{Transport: idemhttp.NewTransport(base, idemhttp.WithTransportRandomKeys())}
	resp, err := client.Post(server.URL, "text/plain", bytes.NewReader([]byte("body")))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Len(t, server.requests, 3)
	require.NotEmpty(t, server.requests[0].key)
	require.Equal(t, server.requests[0], server.requests[1])
	require.Equal(t, server.requests[0], server.requests[2])
}
