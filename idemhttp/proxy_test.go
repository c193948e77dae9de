package idemhttp_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// proxyTo serves a proxy in front of an address, behind the middleware.
func proxyTo(t testing.TB, guard *idem.Guard, upstream string, opts ...idemhttp.Option) *httptest.Server {
	t.Helper()
	target, err := url.Parse(upstream)
	require.NoError(t, err)
	return serve(t, guard, idemhttp.NewProxy(target).ServeHTTP, opts...)
}

func TestProxyForwardsAndReplays(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	upstream := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		w.Header().Set("X-Saw", strings.Join([]string{
			r.Host, r.RequestURI, r.Header.Get("Idempotency-Key"), r.Header.Get("Expect"), r.Header.Get("X-Custom"),
		}, "|"))
		w.Header()["X-Forwarded"] = r.Header["X-Forwarded-For"]
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "got "+string(body))
	}))
	proxy := proxyTo(t, newGuard(t), upstream.URL, idemhttp.StoreHeaders("X-Saw"))
	first := post(t, proxy, "/charges?b=%zz&a=;", "k", `{"a":1}`, "Expect", "100-continue", "X-Custom", "c", "X-Forwarded-For", "10.0.0.9")
	require.Equal(t, http.StatusCreated, first.status)
	require.Equal(t, `got {"a":1}`, first.body)
	require.Equal(t, strings.TrimPrefix(proxy.URL, "http://")+"|/charges?b=%zz&a=;|k||c", first.header.Get("X-Saw"))
	require.Equal(t, []string{"10.0.0.9, 127.0.0.1"}, first.header["X-Forwarded"])

	again := post(t, proxy, "/charges?b=%zz&a=;", "k", `{"a":1}`)
	require.Equal(t, idemhttp.StatusReplayed, again.said())
	require.Equal(t, first.body, again.body)
	require.Equal(t, first.header["X-Saw"], again.header["X-Saw"])
	require.Empty(t, again.header["Set-Cookie"])
	require.EqualValues(t, 1, runs.Load())
}

// TestProxyRefused: nothing was sent, so the key is free for the next try.
func TestProxyRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	proxy := proxyTo(t, newGuard(t), "http://"+address)
	for range 2 {
		a := post(t, proxy, "/", "k", "{}")
		require.Equal(t, http.StatusBadGateway, a.status)
		require.Equal(t, idemhttp.StatusExecuted, a.said())
		p := a.problem(t)
		require.Equal(t, idemhttp.ProblemUnreachable, p.Type)
		require.True(t, p.Retryable)
		require.NotContains(t, a.body, address)
	}
	listener, err = net.Listen("tcp", address)
	require.NoError(t, err)
	upstream := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.NotFoundHandler()}}
	upstream.Start()
	t.Cleanup(upstream.Close)
	require.Equal(t, http.StatusNotFound, post(t, proxy, "/", "k", "{}").status)
}

// raw is an upstream that answers every request on its connections by hand.
func raw(t *testing.T, answer func(conn net.Conn, n int64)) (address string, requests *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	requests = new(atomic.Int64)
	ctx, cancel := context.WithCancel(context.Background())
	accepting := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		<-accepting
	})
	go func() {
		defer close(accepting)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			go func() {
				defer stop()
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					n := requests.Add(1)
					answer(conn, n)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), requests
}

// TestProxyOutcomeUnknown: what was sent is never sent again.
func TestProxyOutcomeUnknown(t *testing.T) {
	t.Parallel()
	fine := func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n") }
	tests := []struct {
		name   string
		answer func(net.Conn)
		status int
		kind   string
	}{
		{"broken at once", func(c net.Conn) { _ = c.Close() }, http.StatusBadGateway, idemhttp.ProblemUpstreamBroken},
		{"reset", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }, http.StatusBadGateway, idemhttp.ProblemUpstreamBroken},
		{"broken in the header", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nA:"); _ = c.Close() }, http.StatusBadGateway, idemhttp.ProblemUpstreamBroken},
		{"broken in the body", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
			_ = c.Close()
		}, http.StatusBadGateway, idemhttp.ProblemUpstreamBroken},
		{"not HTTP", func(c net.Conn) { _, _ = io.WriteString(c, "220 mail.example.com ESMTP\r\n"); _ = c.Close() }, http.StatusBadGateway, idemhttp.ProblemUpstreamBroken},
		{"no answer", func(net.Conn) {}, http.StatusGatewayTimeout, idemhttp.ProblemUpstreamTimeout},
	}
	for _, tt := range tests {
		for _, body := range []string{"{}", ""} { // without a body http.Transport is bolder
			t.Run(tt.name+" "+body, func(t *testing.T) {
				t.Parallel()
				address, requests := raw(t, func(conn net.Conn, n int64) {
					if n == 1 {
						fine(conn) // the connection is used again for the next one
						return
					}
					tt.answer(conn)
				})
				guard := newGuard(t)
				proxy := proxyTo(t, guard, address, idemhttp.HandlerTimeout(time.Second))
				require.Equal(t, http.StatusNoContent, post(t, proxy, "/", "warm", body).status)
				first := post(t, proxy, "/", "k", body)
				require.Equal(t, tt.status, first.status)
				require.Equal(t, idemhttp.StatusInterrupted, first.said())
				p := first.problem(t)
				require.Equal(t, tt.kind, p.Type)
				require.False(t, p.Retryable)
				again := post(t, proxy, "/", "k", body)
				require.Equal(t, idemhttp.ProblemInterrupted, again.problem(t).Type)
				require.EqualValues(t, 2, requests.Load())

				rec, err := guard.Store().Get(t.Context(), idem.Key{Scope: "test", ID: "k"})
				require.NoError(t, err)
				require.Contains(t, rec.Error, "forward the request")
			})
		}
	}
}

// TestProxyChunkedResponse: a response without a length is not a stream.
func TestProxyChunkedResponse(t *testing.T) {
	t.Parallel()
	upstream := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "one ")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "two")
		w.Header().Set("X-Sum", "7")
	}))
	proxy := proxyTo(t, newGuard(t), upstream.URL)
	first := post(t, proxy, "/", "k", "{}")
	require.Equal(t, "one two", first.body)
	require.Equal(t, "7", first.trailer.Get("X-Sum"))
	again := post(t, proxy, "/", "k", "{}")
	require.Equal(t, idemhttp.StatusReplayed, again.said())
	require.Equal(t, "one two", again.body)
}

// TestProxyServerSentEvents: they come through one by one, and a repeat is told.
func TestProxyServerSentEvents(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	upstream := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for range 3 {
			_, _ = io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
			<-next
		}
	}))
	proxy := proxyTo(t, newGuard(t), upstream.URL)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL, nil)
	require.NoError(t, err)
	req.Header.Set("Idempotency-Key", "k")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for range 3 {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "data: x\n", line)
		_, err = lines.ReadString('\n')
		require.NoError(t, err)
		next <- struct{}{}
	}
	_, err = lines.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	a := post(t, proxy, "/", "k", "", "Content-Type", "")
	require.Equal(t, idemhttp.ProblemResponseNotKept, a.problem(t).Type, a.body)
}

// TestProxyClientHangsUp: the record is finished, however large the response.
func TestProxyClientHangsUp(t *testing.T) {
	t.Parallel()
	body := largeBody(1 << 20)
	arrived, release := make(chan struct{}), make(chan struct{})
	var runs atomic.Int64
	upstream := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		writeInPieces(w, body[:1<<19])
		close(arrived)
		<-release
		writeInPieces(w, body[1<<19:])
	}))
	proxy := proxyTo(t, newGuard(t), upstream.URL, idemhttp.MaxResponse(1000))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
		close(release)
	}()
	_, err := try(ctx, proxy, http.MethodPost, "/", "k", strings.NewReader("{}"))
	require.ErrorIs(t, err, context.Canceled)
	again := post(t, proxy, "/", "k", "{}", "Prefer", "wait=20")
	require.Equal(t, idemhttp.StatusReplayed, again.said())
	require.True(t, body == again.body)
	require.EqualValues(t, 1, runs.Load())
}

// TestProxyUnprotected: without the middleware it is a plain reverse proxy.
func TestProxyUnprotected(t *testing.T) {
	t.Parallel()
	address, requests := raw(t, func(conn net.Conn, _ int64) { _ = conn.Close() })
	target, err := url.Parse(address)
	require.NoError(t, err)
	proxy := start(t, idemhttp.NewProxy(target))
	a := post(t, proxy, "/", "k", "{}")
	require.Equal(t, http.StatusBadGateway, a.status)
	require.Equal(t, idemhttp.ProblemUpstreamBroken, a.problem(t).Type)
	require.Empty(t, a.said())
	require.EqualValues(t, 1, requests.Load())
}

// TestProxyWithoutServer: a response that broke off is never taken for a whole one,
// wherever the request came from.
func TestProxyWithoutServer(t *testing.T) {
	t.Parallel()
	address, _ := raw(t, func(conn net.Conn, _ int64) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
		_ = conn.Close()
	})
	target, err := url.Parse(address)
	require.NoError(t, err)
	proxy := protect(t, newGuard(t), idemhttp.NewProxy(target).ServeHTTP)
	for _, status := range []int{http.StatusBadGateway, http.StatusConflict} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		proxy.ServeHTTP(w, r)
		require.Equal(t, status, w.Code)
	}
}
