package idemhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/idemhttp"
)

var (
	quotedV4 = regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)
	quotedV8 = regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)
)

// keyServer is a server that notes the keys it was sent.
type keyServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []seenRequest
}

type seenRequest struct {
	method string
	lines  []string // of Idempotency-Key
	header http.Header
	body   string
}

// serveKeys starts a server on a real listener. It answers with handle, which may
// be nil, and is told how many requests came before.
func serveKeys(t *testing.T, handle func(before int, w http.ResponseWriter, r *http.Request)) *keyServer {
	t.Helper()
	s := &keyServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		before := len(s.requests)
		s.requests = append(s.requests, seenRequest{r.Method, r.Header.Values("Idempotency-Key"), r.Header.Clone(), string(body)})
		s.mu.Unlock()
		if handle != nil {
			handle(before, w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) seen() []seenRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seenRequest(nil), s.requests...)
}

// key returns the only key line of the request with the number i.
func (s *keyServer) key(t *testing.T, i int) string {
	t.Helper()
	seen := s.seen()
	require.Greater(t, len(seen), i)
	require.Len(t, seen[i].lines, 1)
	return seen[i].lines[0]
}

// freshTransport is a base that shares no connections with other tests.
func freshTransport(t *testing.T) *http.Transport {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return base
}

func newRequest(t *testing.T, ctx context.Context, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	return req
}

func send(t *testing.T, client *http.Client, req *http.Request) int {
	t.Helper()
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return resp.StatusCode
}

func TestTransportChoosesKey(t *testing.T) {
	t.Parallel()
	with := func(key string) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return idemhttp.WithKey(ctx, key) }
	}
	tests := []struct {
		name   string
		opts   []idemhttp.TransportOption
		ctx    func(context.Context) context.Context
		method string
		header http.Header
		want   []string
	}{
		{name: "no key to send", method: "POST"},
		{name: "of the context", ctx: with("k"), method: "POST", want: []string{`"k"`}},
		{name: "patch", ctx: with("k"), method: "PATCH", want: []string{`"k"`}},
		{name: "quotes", ctx: with(`a "b" \c`), method: "POST", want: []string{`"a \"b\" \\c"`}},
		{name: "innermost", ctx: func(ctx context.Context) context.Context {
			return idemhttp.WithIntent(idemhttp.WithKey(ctx, "outer"), idemhttp.Intent{Key: "inner"})
		}, method: "POST", want: []string{`"inner"`}},
		{name: "get", ctx: with("k"), method: "GET"},
		{name: "head", ctx: with("k"), method: "HEAD"},
		{name: "put", ctx: with("k"), method: "PUT"},
		{name: "put by choice", opts: []idemhttp.TransportOption{idemhttp.WithTransportMethods("PUT")}, ctx: with("k"), method: "PUT", want: []string{`"k"`}},
		{name: "post by choice not", opts: []idemhttp.TransportOption{idemhttp.WithTransportMethods("PUT")}, ctx: with("k"), method: "POST"},
		{name: "unquoted", opts: []idemhttp.TransportOption{idemhttp.WithTransportUnquotedKeys()}, ctx: with("k"), method: "POST", want: []string{"k"}},
		{name: "on the request", ctx: with("k"), method: "POST", header: http.Header{"Idempotency-Key": {"mine"}}, want: []string{"mine"}},
		{name: "on the request in another case", ctx: with("k"), method: "POST", header: http.Header{"idempotency-key": {"mine"}}, want: []string{"mine"}},
		{name: "on the request, two lines", ctx: with("k"), method: "POST", header: http.Header{"Idempotency-Key": {"a", "b"}}, want: []string{"a", "b"}},
		{name: "suppressed", ctx: with("k"), method: "POST", header: http.Header{"Idempotency-Key": nil}},
		{name: "random not over the context's", opts: []idemhttp.TransportOption{idemhttp.WithTransportRandomKeys()}, ctx: with("k"), method: "POST", want: []string{`"k"`}},
		{name: "random not for safe methods", opts: []idemhttp.TransportOption{idemhttp.WithTransportRandomKeys()}, method: "GET"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serveKeys(t, nil)
			client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t), tt.opts...)}
			ctx := t.Context()
			if tt.ctx != nil {
				ctx = tt.ctx(ctx)
			}
			req := newRequest(t, ctx, tt.method, server.URL, "body")
			req.Header = tt.header
			before := req.Header.Clone()
			require.Equal(t, http.StatusOK, send(t, client, req))
			require.Equal(t, tt.want, server.seen()[0].lines)
			require.Equal(t, before, req.Header, "the request was changed")
			require.Equal(t, "body", server.seen()[0].body)
		})
	}
}

func TestTransportHeaderName(t *testing.T) {
	t.Parallel()
	server := serveKeys(t, nil)
	client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t), idemhttp.WithTransportHeader("paypal-request-id"))}
	send(t, client, newRequest(t, idemhttp.WithKey(t.Context(), "k"), "POST", server.URL, ""))
	require.Empty(t, server.seen()[0].lines)
	require.Equal(t, []string{`"k"`}, server.seen()[0].header["Paypal-Request-Id"])
}

// TestTransportZero sends a request that was made by hand and has no header map.
func TestTransportZero(t *testing.T) {
	t.Parallel()
	server := serveKeys(t, nil)
	req := newRequest(t, idemhttp.WithKey(t.Context(), "k"), "POST", server.URL, "")
	req.Header = nil
	resp, err := new(idemhttp.Transport).RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, `"k"`, server.key(t, 0))
	require.Nil(t, req.Header)
}

func TestTransportRandomKeys(t *testing.T) {
	t.Parallel()
	server := serveKeys(t, nil)
	client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t), idemhttp.WithTransportRandomKeys())}
	for range 2 {
		send(t, client, newRequest(t, t.Context(), "POST", server.URL, ""))
	}
	require.Regexp(t, quotedV4, server.key(t, 0))
	require.NotEqual(t, server.key(t, 0), server.key(t, 1))

	ctx := idemhttp.WithRandomKey(t.Context())
	for range 2 {
		send(t, client, newRequest(t, ctx, "POST", server.URL, ""))
	}
	require.Regexp(t, quotedV4, server.key(t, 2))
	require.Equal(t, server.key(t, 2), server.key(t, 3))
	require.NotEqual(t, server.key(t, 1), server.key(t, 2))
}

// TestTransportRetries has a client that retries by itself, with a timeout per
// try, as hand-written ones do.
func TestTransportRetries(t *testing.T) {
	t.Parallel()
	hangUp := make(chan struct{})
	server := serveKeys(t, func(before int, w http.ResponseWriter, r *http.Request) {
		switch before {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			close(hangUp)
			<-r.Context().Done()
		}
	})
	client := &http.Client{Transport: idemhttp.NewTransport(&http.Transport{DisableKeepAlives: true})}
	ctx := idemhttp.WithRandomKey(t.Context())
	req := newRequest(t, ctx, "POST", server.URL, "amount=120")
	var failures []error
	for try := 0; ; try++ {
		require.Less(t, try, 5)
		tryCtx, cancel := context.WithCancel(req.Context())
		if try == 2 {
			go func() { <-hangUp; cancel() }()
		}
		body, err := req.GetBody()
		require.NoError(t, err)
		again := req.Clone(tryCtx)
		again.Body = body
		resp, err := client.Do(again)
		if err == nil {
			require.NoError(t, resp.Body.Close())
			if resp.StatusCode == http.StatusOK {
				cancel()
				break
			}
			err = errors.New(resp.Status)
		}
		cancel()
		failures = append(failures, err)
	}
	require.Len(t, failures, 3)
	require.Len(t, server.seen(), 4)
	for i, r := range server.seen() {
		require.Equal(t, server.key(t, 0), server.key(t, i))
		require.Equal(t, "amount=120", r.body)
	}
}

// TestTransportBrokenConnection: net/http retries a request with a key on its
// own when a reused connection breaks. All it sends is one call of RoundTrip.
func TestTransportBrokenConnection(t *testing.T) {
	t.Parallel()
	server := serveKeys(t, func(before int, _ http.ResponseWriter, _ *http.Request) {
		if before == 1 {
			panic(http.ErrAbortHandler)
		}
	})
	client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t), idemhttp.WithTransportRandomKeys())}
	send(t, client, newRequest(t, t.Context(), "GET", server.URL, ""))
	require.Equal(t, http.StatusOK, send(t, client, newRequest(t, t.Context(), "POST", server.URL, "once")))
	require.Len(t, server.seen(), 3)
	require.Regexp(t, quotedV4, server.key(t, 1))
	require.Equal(t, server.key(t, 1), server.key(t, 2))
	require.Equal(t, "once", server.seen()[2].body)
}

func TestTransportHTTP2(t *testing.T) {
	t.Parallel()
	protocol := make(chan string, 1)
	keys := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		protocol <- r.Proto
		keys <- r.Header.Get("Idempotency-Key")
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	client := &http.Client{Transport: idemhttp.NewTransport(server.Client().Transport)}
	send(t, client, newRequest(t, idemhttp.WithKey(t.Context(), "k"), "POST", server.URL, ""))
	require.Equal(t, "HTTP/2.0", <-protocol)
	require.Equal(t, `"k"`, <-keys)
}

type idleCloser struct {
	http.RoundTripper
	closed int
}

func (c *idleCloser) CloseIdleConnections() { c.closed++ }

func TestTransportCloseIdleConnections(t *testing.T) {
	t.Parallel()
	base := &idleCloser{}
	(&http.Client{Transport: idemhttp.NewTransport(base)}).CloseIdleConnections()
	require.Equal(t, 1, base.closed)
}

// TestTransportConcurrent shares one Transport and one request header.
func TestTransportConcurrent(t *testing.T) {
	t.Parallel()
	server := serveKeys(t, nil)
	client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t))}
	ctx := idemhttp.WithKey(t.Context(), "shared")
	header := http.Header{"X-Shared": {"yes"}}
	var wg sync.WaitGroup
	for range 16 {
		req := newRequest(t, ctx, "POST", server.URL, "")
		req.Header = header
		wg.Go(func() {
			resp, err := client.Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
	require.Len(t, server.seen(), 16)
	for i := range 16 {
		require.Equal(t, `"shared"`, server.key(t, i))
	}
}
