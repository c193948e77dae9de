package idemhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// gone hands the context of the connection to the handler, which cannot see it
// end behind the middleware.
type goneKey struct{}

func exposeConnection(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), goneKey{}, r.Context())))
	})
}

func waitUntilGone(r *http.Request) { <-r.Context().Value(goneKey{}).(context.Context).Done() }

func TestClientHangsUpAndRetries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
		var runs atomic.Int64
		entered := make(chan struct{}, 2)
		handlerErr := make(chan error, 2)
		server := start(t, exposeConnection(protect(t, boltGuard(t), func(w http.ResponseWriter, r *http.Request) {
			runs.Add(1)
			entered <- struct{}{}
			waitUntilGone(r)
			handlerErr <- r.Context().Err()
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "receipt")
		})))
		ctx, hangUp := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := try(ctx, server, http.MethodPost, "/", "k", strings.NewReader(`{"a":1}`))
			first <- err
		}()
		<-entered
		hangUp()
		require.ErrorIs(t, <-first, context.Canceled)
		require.NoError(t, <-handlerErr, "the handler's context goes on")

		again := post(t, server, "/", "k", `{"a":1}`, "Prefer", "wait=30")
		require.Equal(t, http.StatusCreated, again.status)
		require.Equal(t, "receipt", again.body)
		require.Equal(t, idemhttp.StatusReplayed, again.said())
		require.EqualValues(t, 1, runs.Load())
	})
}

func TestHandlerTimeout(t *testing.T) {
	t.Parallel()
	server := serve(t, newGuard(t), func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		if errors.Is(r.Context().Err(), context.DeadlineExceeded) {
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	}, idemhttp.HandlerTimeout(20*time.Millisecond))
	require.Equal(t, http.StatusGatewayTimeout, post(t, server, "/", "k", "{}").status)
	again := post(t, server, "/", "k", "{}")
	require.Equal(t, http.StatusGatewayTimeout, again.status)
	require.Equal(t, idemhttp.StatusReplayed, again.said())
}

func TestPanicIsInterruptedAndGoesOn(t *testing.T) {
	t.Parallel()
	for _, value := range []any{"boom", http.ErrAbortHandler} {
		onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
			var runs atomic.Int64
			panicked := make(chan any, 1)
			handler := protect(t, newGuard(t), func(w http.ResponseWriter, _ *http.Request) {
				runs.Add(1)
				_, _ = io.WriteString(w, "half of it")
				panic(value)
			})
			server := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					if v := recover(); v != nil {
						panicked <- v
						panic(http.ErrAbortHandler) // which the server does not log
					}
				}()
				handler.ServeHTTP(w, r)
			}))
			_, err := try(t.Context(), server, http.MethodPost, "/", "k", strings.NewReader("{}"))
			require.Error(t, err)
			require.Equal(t, value, <-panicked)

			again := post(t, server, "/", "k", "{}")
			require.Equal(t, http.StatusConflict, again.status)
			require.Equal(t, idemhttp.StatusInterrupted, again.said())
			p := again.problem(t)
			require.Equal(t, idemhttp.ProblemInterrupted, p.Type)
			require.False(t, p.Retryable)
			require.NotContains(t, again.body, "boom")
			require.EqualValues(t, 1, runs.Load())
		})
	}
}

func TestPanicUnderRerunRunsAgain(t *testing.T) {
	t.Parallel()
	policy := idem.API
	policy.OnInterrupted = idem.Rerun()
	var runs atomic.Int64
	server := serve(t, newGuard(t), func(w http.ResponseWriter, r *http.Request) {
		a, ok := idem.AttemptFrom(r.Context())
		if runs.Add(1) == 1 || !ok || a.Number() != 2 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "second attempt")
	}, idemhttp.Policy(policy))
	_, err := try(t.Context(), server, http.MethodPost, "/", "k", strings.NewReader("{}"))
	require.Error(t, err)
	require.Equal(t, "second attempt", post(t, server, "/", "k", "{}").body)
}

// stacks prints those of all goroutines, if it is printed.
type stacks struct{}

func (stacks) String() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// TestNothingIsLeftBehind cannot run in parallel: it counts goroutines. The
// clients hang up at every moment of a request.
func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	guard := newGuard(t)
	before := runtime.NumGoroutine()
	server := httptest.NewServer(protect(t, guard, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}, idemhttp.BodyMemory(10), idemhttp.SpoolDir(dir)))
	body := strings.Repeat("x", 5000)
	var wg sync.WaitGroup
	for i := range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		wg.Go(func() {
			defer cancel()
			_, _ = try(ctx, server, http.MethodPost, "/", "k", strings.NewReader(body), "Prefer", "wait=5")
		})
	}
	wg.Wait()
	require.Equal(t, body, post(t, server, "/", "k", body, "Prefer", "wait=5").body)
	server.Close()
	server.Client().CloseIdleConnections()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, 10*time.Second, time.Millisecond, stacks{}) // it runs in one itself
	requireEmpty(t, dir)
}
