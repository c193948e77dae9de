//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProxyKilledWhileTheServiceWorks(t *testing.T) {
	t.Parallel()
	s, service := newShop(t), newWorks(t)
	f := s.proxy(service.URL, "--scope", "shop")
	broken := make(chan error, 1)
	r := request(t, http.MethodPost, f.url+"/charges", "k", "x")
	go func() {
		_, err := send(r)
		broken <- err
	}()
	<-service.begun
	f.kill(t)
	require.Error(t, <-broken)
	close(service.let)

	f = s.proxy(service.URL, "--scope", "shop")
	for range 2 {
		a, err := send(request(t, http.MethodPost, f.url+"/charges", "k", "x"))
		require.NoError(t, err)
		requireInterrupted(t, a)
	}
	require.EqualValues(t, 1, service.count.Load())
}

// Of a service that cannot be reached it is known that it did nothing.
func TestProxyServiceDown(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	f := s.proxy("http://"+address, "--scope", "shop")
	require.Equal(t, http.StatusBadGateway, post(t, f.url, "k").code)

	l, err = net.Listen("tcp", address)
	require.NoError(t, err)
	service := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })}
	go func() { _ = service.Serve(l) }()
	t.Cleanup(func() { _ = service.Close() })
	require.Equal(t, answer{http.StatusCreated, "executed", ""}, post(t, f.url, "k"))
	require.Equal(t, answer{http.StatusCreated, "replayed", ""}, post(t, f.url, "k"))
}

// Of one that breaks off it is not known, also on a connection that was used
// before and without a body, where Go's client would send the request again.
func TestProxyServiceDiesInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "x"} {
		t.Run(fmt.Sprintf("body %q", body), func(t *testing.T) {
			t.Parallel()
			s, service := newShop(t), newWorks(t)
			service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					return
				}
				service.count.Add(1)
				panic(http.ErrAbortHandler)
			})
			f := s.proxy(service.URL, "--scope", "shop")
			a, err := send(request(t, http.MethodGet, f.url, "", ""))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, a.code)

			a, err = send(request(t, http.MethodPost, f.url, "k", body))
			require.NoError(t, err)
			require.Equal(t, http.StatusBadGateway, a.code)
			a, err = send(request(t, http.MethodPost, f.url, "k", body))
			require.NoError(t, err)
			requireInterrupted(t, a)
			require.EqualValues(t, 1, service.count.Load())
		})
	}
}

func TestProxyTimeout(t *testing.T) {
	t.Parallel()
	s, service := newShop(t), newWorks(t)
	f := s.proxy(service.URL, "--scope", "shop", "--route", "POST /slow timeout=50ms")
	require.Equal(t, http.StatusGatewayTimeout, post(t, f.url+"/slow", "k").code)
	requireInterrupted(t, post(t, f.url+"/slow", "k"))
	require.EqualValues(t, 1, service.count.Load())
}

// Many services send their responses in chunks. They are kept all the same.
func TestProxyKeepsChunkedResponses(t *testing.T) {
	t.Parallel()
	s, service := newShop(t), newWorks(t)
	service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		service.count.Add(1)
		for range 3 {
			_, _ = io.WriteString(w, "part ")
			_ = http.NewResponseController(w).Flush()
		}
	})
	f := s.proxy(service.URL, "--scope", "shop")
	require.Equal(t, answer{http.StatusOK, "executed", "part part part "}, post(t, f.url, "k"))
	require.Equal(t, answer{http.StatusOK, "replayed", "part part part "}, post(t, f.url, "k"))
	require.EqualValues(t, 1, service.count.Load())
}

func TestProxyTenants(t *testing.T) {
	t.Parallel()
	s, service := newShop(t), newWorks(t)
	close(service.let)
	f := s.proxy(service.URL, "--scope", "shop", "--scope-header", "X-Tenant")
	for _, tenant := range []string{"acme", "globex"} {
		r := request(t, http.MethodPost, f.url, "k", "x")
		r.Header.Set("X-Tenant", tenant)
		a, err := send(r)
		require.NoError(t, err)
		require.Equal(t, answer{http.StatusCreated, "executed", "done"}, a)
	}
	a := post(t, f.url, "k")
	require.Equal(t, http.StatusBadRequest, a.code)
	require.Contains(t, a.body, "urn:idem:problem:scope")
	require.NoError(t, f.Process.Signal(os.Interrupt))
	code, _ := f.end(t)
	require.Zero(t, code)
	_, out, _ := s.run("ls", "-o", "name")
	require.Equal(t, "shop:acme/k\nshop:globex/k\n", out)
}

// Web sockets pass.
func TestProxyUpgrade(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		if r, err := http.ReadRequest(in); err != nil || r.Header.Get("Upgrade") != "echo" {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, in)
	}()
	f := newShop(t).proxy("http://"+l.Addr().String(), "--scope", "shop")
	c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, "GET /chat HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	for _, word := range []string{"ping\n", "pong\n"} {
		_, err = io.WriteString(c, word)
		require.NoError(t, err)
		got, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, word, got)
	}
	require.NoError(t, f.Process.Signal(syscall.SIGTERM))
	code, said := f.end(t)
	require.Zero(t, code, "it does not wait for taken-over connections: %s", said)
}

// Server-sent events come through while the service still writes.
func TestProxyEvents(t *testing.T) {
	t.Parallel()
	s, service := newShop(t), newWorks(t)
	service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 2 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-service.let: // the test has read it
			case <-r.Context().Done():
			}
		}
	})
	f := s.proxy(service.URL, "--scope", "shop")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/events", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 2 {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("data: %d\n", i), line)
		_, err = lines.Discard(1)
		require.NoError(t, err)
		service.let <- struct{}{}
	}
}
