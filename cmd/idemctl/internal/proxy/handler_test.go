package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// service remembers the request targets that it is asked for.
type service struct {
	*httptest.Server
	mu      sync.Mutex
	targets []string
}

func newService(t *testing.T) *service {
	s := new(service)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.targets = append(s.targets, r.Method+" "+r.RequestURI)
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.targets
}

// newFront returns the address of a proxy in front of s with these routes.
func newFront(t *testing.T, s *service, g *idem.Guard, routes ...string) string {
	t.Helper()
	c := NewConfig()
	require.NoError(t, c.Set("to", s.URL))
	require.NoError(t, c.Set("scope", "shop"))
	for _, r := range routes {
		require.NoError(t, c.AddRoute("--route", r, ""))
	}
	require.NoError(t, c.Validate())
	h, err := NewHandler(g, c)
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func newGuard(t *testing.T) *idem.Guard {
	g, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	require.NoError(t, err)
	return g
}

// ask sends a request whose target is sent as it is written.
func ask(t *testing.T, base, method, target, key string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base, strings.NewReader("x"))
	require.NoError(t, err)
	r.URL.Opaque = strings.TrimPrefix(base, "http:") + target
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp
}

func TestHandlerMatches(t *testing.T) {
	t.Parallel()
	routes := []string{"POST /charges", "PUT /orders/{id}", "/both/", "POST /files/{rest...}"}
	tests := []struct {
		method, target string
		want           bool
	}{
		{"POST", "/charges", true},
		{"POST", "/charges?a=b", true},
		{"POST", "/charges/", true},
		{"POST", "//charges", true},
		{"POST", "/x/../charges", true},
		{"POST", "/./%2e/charges", true},
		{"POST", "/%63harges", true},
		{"POST", "/charges/1", false},
		{"POST", "/Charges", false},
		{"PATCH", "/charges", false},
		{"DELETE", "/charges", false},
		{"GET", "/charges", false},
		{"PUT", "/orders/7", true},
		{"PUT", "/orders/a%2Fb", true},
		{"PUT", "/orders", false},
		{"PUT", "/orders/", false},
		{"POST", "/both/x/y", true},
		{"PATCH", "/both", true},
		{"PUT", "/both/x", false},
		{"POST", "/files/a//b", true},
		{"POST", "/", false},
		{"POST", "/%zz", false},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			base := newFront(t, s, newGuard(t), routes...)
			if tt.target == "/%zz" { // net/http itself refuses it
				require.Equal(t, http.StatusBadRequest, ask(t, base, tt.method, tt.target, "").StatusCode)
				return
			}
			resp := ask(t, base, tt.method, tt.target, "")
			if tt.want {
				require.Equal(t, http.StatusBadRequest, resp.StatusCode)
				require.Empty(t, s.seen(), "a key is required")
				ask(t, base, tt.method, tt.target, "k")
				require.Equal(t, "replayed", ask(t, base, tt.method, tt.target, "k").Header.Get(idemhttp.HeaderStatus))
			} else {
				require.Equal(t, http.StatusOK, resp.StatusCode)
				require.Empty(t, resp.Header.Get(idemhttp.HeaderStatus))
			}
			require.Equal(t, []string{tt.method + " " + tt.target}, s.seen(), "the target is forwarded as it came")
		})
	}
}

func TestHandlerWithoutRoutes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	base := newFront(t, s, newGuard(t))
	for _, method := range []string{"POST", "PATCH"} {
		require.Equal(t, http.StatusBadRequest, ask(t, base, method, "/any/path", "").StatusCode)
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS", "BREW"} {
		require.Equal(t, http.StatusOK, ask(t, base, method, "/any/path", "").StatusCode)
	}
	require.Len(t, s.seen(), 5)
}

// Routes can be edited while clients still repeat requests.
func TestHandlerRoutesAreNoPartOfARepeat(t *testing.T) {
	t.Parallel()
	s, g := newService(t), newGuard(t)
	ask(t, newFront(t, s, g), "POST", "/charges/1", "k")
	for _, route := range []string{"POST /charges/{id}", "/charges/{charge}", "POST /"} {
		resp := ask(t, newFront(t, s, g, route), "POST", "/charges/1", "k")
		require.Equal(t, "replayed", resp.Header.Get(idemhttp.HeaderStatus), route)
	}
	require.Len(t, s.seen(), 1)
}

func TestHandlerSettings(t *testing.T) {
	t.Parallel()
	s := newService(t)
	base := newFront(t, s, newGuard(t), "/optional key=optional", "/small max-body=0", "/secret store-body=never", "/short max-response=3 policy=payments")
	require.Equal(t, "ignored", ask(t, base, "POST", "/optional", "").Header.Get(idemhttp.HeaderStatus))
	require.Equal(t, http.StatusRequestEntityTooLarge, ask(t, base, "POST", "/small", "a").StatusCode)
	for _, path := range []string{"/secret", "/short"} {
		require.Equal(t, http.StatusOK, ask(t, base, "POST", path, path).StatusCode)
		require.Equal(t, http.StatusConflict, ask(t, base, "POST", path, path).StatusCode, "its body was not kept")
	}
}
