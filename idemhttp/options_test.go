package idemhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

func TestStoreHeaders(t *testing.T) {
	t.Parallel()
	server := serve(t, newGuard(t), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Cost", "7")
		w.Header().Set("X-Other", "1")
	}, idemhttp.StoreHeaders("x-request-cost"))
	require.Equal(t, "1", post(t, server, "/", "k", "{}").header.Get("X-Other"))
	again := post(t, server, "/", "k", "{}")
	require.Equal(t, "7", again.header.Get("X-Request-Cost"))
	require.Empty(t, again.header.Get("X-Other"))
}

// TestOuterHeaders: what middleware around sets is there once on every answer.
func TestOuterHeaders(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	inner := protect(t, newGuard(t), func(w http.ResponseWriter, _ *http.Request) { w.Header().Add("Vary", "Accept") })
	server := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", strings.Repeat("i", int(n.Add(1))))
		w.Header().Set("Vary", "Origin")
		inner.ServeHTTP(w, r)
	}))
	for _, id := range []string{"i", "ii"} {
		a := post(t, server, "/", "k", "{}")
		require.Equal(t, id, a.header.Get("X-Request-Id"))
		require.Equal(t, []string{"Origin", "Accept"}, a.header.Values("Vary"))
	}
	require.Equal(t, "iii", post(t, server, "/", "k", "[]").header.Get("X-Request-Id"))
}

func TestRouteTraceAndKind(t *testing.T) {
	t.Parallel()
	guard := newGuard(t)
	server := serve(t, guard, func(http.ResponseWriter, *http.Request) {},
		idemhttp.Route(func(r *http.Request) string { return r.Header.Get("X-Route") }),
		idemhttp.TraceID(func(*http.Request) string { return "trace-1" }))
	post(t, server, "/", "k", "{}", "X-Route", "a")
	rec, err := guard.Store().Get(t.Context(), idem.Key{Scope: "test", ID: "k"})
	require.NoError(t, err)
	require.Equal(t, "trace-1", rec.TraceID)
	require.Equal(t, "http", rec.Kind)
	require.Contains(t, rec.Fingerprint.Names(), "route")
	require.Equal(t, []string{"route"}, post(t, server, "/", "k", "{}", "X-Route", "b").problem(t).Parts)
}

// TestCutOff: a service that is stopped hard while a handler runs leaves an
// interrupted attempt, which the next one tells and does not run again.
func TestCutOff(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "http.db")
	guard, err := idem.Open(path)
	require.NoError(t, err)
	entered, closed, cause := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	server := serve(t, guard, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		cause <- context.Cause(r.Context())
		<-closed // else it may still be recorded
		_, _ = io.WriteString(w, "done all the same")
	})
	first := make(chan answer, 1)
	go func() {
		a, _ := try(context.Background(), server, http.MethodPost, "/", "k", strings.NewReader("{}"))
		first <- a
	}()
	<-entered
	now, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, guard.Shutdown(now), context.Canceled)
	close(closed)
	require.ErrorIs(t, <-cause, idem.ErrLeaseLost)
	a := <-first
	require.Equal(t, "done all the same", a.body)
	require.Equal(t, idemhttp.StatusExecuted, a.said())

	guard, err = idem.Open(path)
	require.NoError(t, err)
	defer guard.Close()
	again := post(t, serve(t, guard, func(http.ResponseWriter, *http.Request) { panic("again") }), "/", "k", "{}")
	require.Equal(t, http.StatusConflict, again.status)
	require.Equal(t, idemhttp.ProblemInterrupted, again.problem(t).Type)
}

// TestGoneBeforeTheHandler: a client that has hung up by the time its key is
// claimed leaves the key free.
func TestGoneBeforeTheHandler(t *testing.T) {
	t.Parallel()
	store := &claimHook{MemoryStore: idem.NewMemoryStore(idem.MemoryConfig{})}
	guard, err := idem.New(store)
	require.NoError(t, err)
	handler := protect(t, guard, func(http.ResponseWriter, *http.Request) { panic("nobody asks") })
	ctx, hangUp := context.WithCancel(t.Context())
	store.claimed = hangUp
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
	require.NoError(t, err)
	r.Header.Set("Idempotency-Key", "k")
	w := &discard{header: make(http.Header)}
	handler.ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.status)
	_, err = store.Get(t.Context(), idem.Key{Scope: "test", ID: "k"})
	require.True(t, errors.Is(err, idem.ErrNotFound))
}

// claimHook calls claimed when a key has just been claimed.
type claimHook struct {
	*idem.MemoryStore
	claimed func()
}

func (s *claimHook) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	rec, err := s.MemoryStore.Create(ctx, rec)
	s.claimed()
	return rec, err
}
