package idemhttp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

func testScope(*http.Request) (string, error) { return "test", nil }

func newGuard(t testing.TB, opts ...idem.Option) *idem.Guard {
	t.Helper()
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, guard.Close()) })
	return guard
}

func boltGuard(t testing.TB, opts ...idem.Option) *idem.Guard {
	t.Helper()
	guard, err := idem.Open(filepath.Join(t.TempDir(), "http.db"), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, guard.Close()) })
	return guard
}

func protect(t testing.TB, guard *idem.Guard, handler http.HandlerFunc, opts ...idemhttp.Option) http.Handler {
	t.Helper()
	middleware, err := idemhttp.New(guard, testScope, opts...)
	require.NoError(t, err)
	return middleware(handler)
}

// serve starts a server with the handler behind the middleware.
func serve(t testing.TB, guard *idem.Guard, handler http.HandlerFunc, opts ...idemhttp.Option) *httptest.Server {
	t.Helper()
	return start(t, protect(t, guard, handler, opts...))
}

func start(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func startHTTP2(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// onBoth runs a test over HTTP/1.1 and over HTTP/2.
func onBoth(t *testing.T, test func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server)) {
	t.Run("HTTP/1.1", func(t *testing.T) {
		t.Parallel()
		test(t, start)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		test(t, startHTTP2)
	})
}

// answer is a response read to its end.
type answer struct {
	status  int
	proto   int
	header  http.Header
	trailer http.Header
	body    string
}

func (a answer) said() idemhttp.Status {
	return idemhttp.Status(a.header.Get(idemhttp.HeaderStatus))
}

func (a answer) problem(t *testing.T) idemhttp.Problem {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), a.body)
	var p idemhttp.Problem
	require.NoError(t, json.Unmarshal([]byte(a.body), &p))
	require.Equal(t, a.status, p.Status)
	return p
}

// post sends a JSON body with a key. Headers are given as name, value, …
func post(t testing.TB, server *httptest.Server, path, key, body string, headers ...string) answer {
	t.Helper()
	a, err := try(t.Context(), server, http.MethodPost, path, key, strings.NewReader(body), headers...)
	require.NoError(t, err)
	return a
}

func try(ctx context.Context, server *httptest.Server, method, path, key string, body io.Reader, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, server.URL+path, body)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{}
	if own := server.Client(); own != nil {
		client = *own
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.ProtoMajor, res.Header, res.Trailer, string(content)}, err
}

// roundTrip sends a request that the caller has made.
func roundTrip(t testing.TB, client *http.Client, req *http.Request) answer {
	t.Helper()
	res, err := client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return answer{res.StatusCode, res.ProtoMajor, res.Header, res.Trailer, string(content)}
}
