package idemhttp_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

func TestBadKeyIsRefused(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	server := serve(t, newGuard(t), func(http.ResponseWriter, *http.Request) { runs.Add(1) })
	tests := []struct {
		name   string
		keys   []string
		detail string
	}{
		{"two lines", []string{"a", "b"}, "more than once"},
		{"the same twice", []string{"a", "a"}, "more than once"},
		{"empty", []string{""}, "empty"},
		{"empty string", []string{`""`}, "empty"},
		{"too long", []string{strings.Repeat("x", idem.MaxIDBytes+1)}, "256 bytes"},
		{"not ASCII", []string{"ü"}, "ASCII"},
		{"joined by a proxy", []string{"a, b"}, "comma"},
		{"open quote", []string{`"a`}, "closing quote"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
			require.NoError(t, err)
			req.Header["Idempotency-Key"] = tt.keys
			a := roundTrip(t, server.Client(), req)
			require.Equal(t, http.StatusBadRequest, a.status)
			require.Equal(t, idemhttp.StatusIgnored, a.said())
			p := a.problem(t)
			require.Equal(t, idemhttp.ProblemKeyInvalid, p.Type)
			require.Contains(t, p.Detail, tt.detail)
			require.False(t, p.Retryable)
		})
	}
	t.Cleanup(func() { require.Zero(t, runs.Load()) })
}

func TestMissingKey(t *testing.T) {
	t.Parallel()
	guard := newGuard(t)
	handler := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

	a := post(t, serve(t, guard, handler), "/", "", "{}")
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Equal(t, idemhttp.ProblemKeyMissing, a.problem(t).Type)

	var said []idemhttp.Status
	server := serve(t, guard, handler, idemhttp.MissingKey(idemhttp.Allow),
		idemhttp.OnAnswer(func(_ *http.Request, s idemhttp.Status) { said = append(said, s) }))
	for range 2 {
		a = post(t, server, "/", "", "{}")
		require.Equal(t, http.StatusAccepted, a.status)
		require.Equal(t, idemhttp.StatusIgnored, a.said())
	}
	require.Equal(t, http.StatusBadRequest, post(t, server, "/", `""`, "{}").status, "empty is not missing")
	server.Close() // which waits for the handlers
	require.Len(t, said, 3)
	c := guard.Counters()
	require.EqualValues(t, 2, c.Unprotected)
	require.Equal(t, map[idem.RejectReason]uint64{idem.RejectMissing: 1, idem.RejectFormat: 1}, c.RejectedBy)
}

func TestOtherMethodsPass(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	server := serve(t, newGuard(t), func(http.ResponseWriter, *http.Request) { runs.Add(1) })
	tests := []struct {
		method string
		said   idemhttp.Status
	}{
		{http.MethodGet, ""},
		{http.MethodHead, ""},
		{http.MethodOptions, ""},
		{http.MethodPut, idemhttp.StatusIgnored},
		{http.MethodDelete, idemhttp.StatusIgnored},
	}
	for _, tt := range tests {
		before := runs.Load()
		for range 2 {
			a, err := try(t.Context(), server, tt.method, "/", "k", nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, a.status)
			require.Equal(t, tt.said, a.said(), tt.method)
		}
		require.Equal(t, before+2, runs.Load(), tt.method)
	}
}

func TestMethodsAndKeyHeader(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	server := serve(t, newGuard(t), func(http.ResponseWriter, *http.Request) { runs.Add(1) },
		idemhttp.Methods(http.MethodPut), idemhttp.KeyHeader("X-Idempotency-Key"), idemhttp.RequireUUID(true))
	put := func(key string) answer {
		a, err := try(t.Context(), server, http.MethodPut, "/", "", strings.NewReader("{}"), "X-Idempotency-Key", key)
		require.NoError(t, err)
		return a
	}
	require.Equal(t, http.StatusBadRequest, put("not-a-uuid").status)
	require.Equal(t, idemhttp.StatusExecuted, put("8e03978e-40d5-43dd-bc93-6894a57f9324").said())
	require.Equal(t, idemhttp.StatusReplayed, put(`"8E03978E-40D5-43DD-BC93-6894A57F9324"`).said())
	require.EqualValues(t, 1, runs.Load())
}

func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	middleware, err := idemhttp.New(newGuard(t), func(r *http.Request) (string, error) {
		tenant := r.Header.Get("X-Tenant")
		if tenant == "" {
			return "", errors.New("who are you")
		}
		return "charges:" + tenant, nil
	})
	require.NoError(t, err)
	server := start(t, middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("for " + r.Header.Get("X-Tenant")))
	})))
	for _, tenant := range []string{"a", "b"} {
		first := post(t, server, "/", "k", "{}", "X-Tenant", tenant)
		require.Equal(t, idemhttp.StatusExecuted, first.said())
		require.Equal(t, "for "+tenant, first.body)
		require.Equal(t, first.body, post(t, server, "/", "k", "{}", "X-Tenant", tenant).body)
	}
	nobody := post(t, server, "/", "k", "{}")
	require.Equal(t, idemhttp.ProblemScope, nobody.problem(t).Type)
	require.NotContains(t, nobody.body, "who are you")
	odd := post(t, server, "/", "k", "{}", "X-Tenant", "not a scope")
	require.Equal(t, http.StatusInternalServerError, odd.status)
	require.Equal(t, idemhttp.ProblemInternal, odd.problem(t).Type)
}

func TestMismatchNamesParts(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	handler := protect(t, newGuard(t), func(http.ResponseWriter, *http.Request) {})
	mux.Handle("POST /charges/{id}", handler)
	mux.Handle("POST /refunds", handler)
	server := start(t, mux)
	require.Equal(t, idemhttp.StatusExecuted, post(t, server, "/charges/1?a=1", "k", `{"amount":1,"to":"x"}`).said())
	require.Equal(t, idemhttp.StatusReplayed, post(t, server, "/charges/1?a=1", "k", `{"to":"x","amount":1.0}`).said())
	tests := []struct {
		path, body string
		parts      []string
	}{
		{"/charges/1?a=1", `{"amount":2,"to":"x"}`, []string{"/amount"}},
		{"/charges/2?a=2", `{"amount":1,"to":"x"}`, []string{"path", "query"}},
		{"/refunds?a=1", `{"amount":1,"to":"x"}`, []string{"path", "route"}},
		{"/charges/1?a=1", `[]`, []string{"/amount", "/to", "body"}},
	}
	for _, tt := range tests {
		a := post(t, server, tt.path, "k", tt.body)
		require.Equal(t, http.StatusUnprocessableEntity, a.status)
		require.Equal(t, idemhttp.StatusMismatch, a.said())
		p := a.problem(t)
		require.Equal(t, idemhttp.ProblemMismatch, p.Type)
		require.Equal(t, tt.parts, p.Parts)
		require.False(t, p.Retryable)
	}
}

func TestInProgress(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(release) })
	defer end() // a failed test must not wait for ever
	server := serve(t, newGuard(t), func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = w.Write([]byte("done"))
	})
	first := make(chan answer, 1)
	go func() {
		a, _ := try(context.Background(), server, http.MethodPost, "/", "k", strings.NewReader("{}"))
		first <- a
	}()
	<-entered
	a := post(t, server, "/", "k", "{}", "Prefer", "wait=0")
	require.Equal(t, http.StatusConflict, a.status)
	require.Equal(t, idemhttp.StatusInProgress, a.said())
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, seconds)
	require.Equal(t, idemhttp.ProblemInProgress, a.problem(t).Type)
	require.True(t, a.problem(t).Retryable)
	require.Equal(t, idemhttp.StatusInProgress, post(t, server, "/", "k", "{}", "Prefer", "wait=1").said(), "it waits no longer")
	require.Equal(t, http.StatusUnprocessableEntity, post(t, server, "/", "k", "[]").status)
	end()
	require.Equal(t, "done", (<-first).body)
	require.Equal(t, idemhttp.StatusReplayed, post(t, server, "/", "k", "{}").said())
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	guard := newGuard(t)
	_, err := idemhttp.New(nil, testScope)
	require.Error(t, err)
	_, err = idemhttp.New(guard, nil)
	require.Error(t, err)
	tests := []struct {
		names  string
		option idemhttp.Option
	}{
		{"Methods", idemhttp.Methods()},
		{"Methods", idemhttp.Methods(http.MethodPost, http.MethodGet)},
		{"Methods", idemhttp.Methods("PO ST")},
		{"KeyHeader", idemhttp.KeyHeader("")},
		{"KeyHeader", idemhttp.KeyHeader("a b")},
		{"MissingKey", idemhttp.MissingKey(2)},
		{"Retention", idemhttp.Policy(idem.Policy{})},
		{"Route", idemhttp.Route(nil)},
		{"TraceID", idemhttp.TraceID(nil)},
		{"OnAnswer", idemhttp.OnAnswer(nil)},
		{"MaxWait", idemhttp.MaxWait(-1)},
		{"BodyTimeout", idemhttp.BodyTimeout(-1)},
		{"HandlerTimeout", idemhttp.HandlerTimeout(0)},
		{"BodyMemory", idemhttp.BodyMemory(-1)},
		{"MaxBody", idemhttp.MaxBody(-1)},
		{"SpoolDir", idemhttp.SpoolDir("/does/not/exist")},
		{"MaxResponse", idemhttp.MaxResponse(idem.MaxValueBytes)},
		{"StoreBody", idemhttp.StoreBody(7)},
		{"Set-Cookie", idemhttp.StoreHeaders("set-cookie")},
		{"Connection", idemhttp.StoreHeaders("connection")},
		{"StoreHeaders", idemhttp.StoreHeaders("")},
	}
	for _, tt := range tests {
		_, err := idemhttp.New(guard, testScope, tt.option)
		require.ErrorContains(t, err, tt.names)
	}
}
