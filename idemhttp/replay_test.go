package idemhttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// gzipped is content that is not text and carries an encoding.
func gzipped(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, strings.Repeat("compressed ", 100))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func TestReplayIsIdentical(t *testing.T) {
	t.Parallel()
	compressed := gzipped(t)
	tests := []struct {
		name    string
		status  int
		handler http.HandlerFunc
	}{
		{"created", 201, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", "/charges/1")
			w.Header().Set("ETag", `"v1"`)
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":1}`)
		}},
		{"no content", 204, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		{"redirect", 303, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/done?a=ü", http.StatusSeeOther) }},
		{"empty", 200, func(http.ResponseWriter, *http.Request) {}},
		{"not found", 404, http.NotFound},
		{"type by content", 200, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html><body>done") }},
		{"no type at all", 200, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, "<html>")
		}},
		{"repeated headers", 200, func(w http.ResponseWriter, _ *http.Request) {
			for i := range 3 {
				w.Header().Add("Link", fmt.Sprintf("</%d>; rel=next", i))
			}
			w.Header()["Vary"] = []string{"Accept", "", "Origin"}
			_, _ = io.WriteString(w, "done")
		}},
		{"encoded", 200, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(compressed)
		}},
		{"in many writes", 200, func(w http.ResponseWriter, _ *http.Request) {
			for i := range 10_000 {
				fmt.Fprintf(w, "%d\n", i)
			}
		}},
		{"copied", 200, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, strings.NewReader(strings.Repeat("copied ", 10_000)))
		}},
		{"wrong length promised", 200, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			_, _ = io.WriteString(w, "longer")
		}},
		{"header set too late", 200, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.Header().Set("Location", "/late")
		}},
	}
	onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				var runs atomic.Int64
				server := start(t, protect(t, boltGuard(t), func(w http.ResponseWriter, r *http.Request) {
					runs.Add(1)
					w.Header().Set("Set-Cookie", "session=secret")
					w.Header().Set("X-Private", "first client only")
					tt.handler(w, r)
				}))
				gzip := []string{"Accept-Encoding", "gzip"} // else the client decodes and drops the header
				first := post(t, server, "/charges", "k", `{}`, gzip...)
				require.Equal(t, tt.status, first.status)
				require.Equal(t, idemhttp.StatusExecuted, first.said())
				require.NotEmpty(t, first.header.Get("Set-Cookie"))
				require.Empty(t, first.header.Get(idemhttp.HeaderReplayed))

				again := post(t, server, "/charges", `"k"`, ` { } `, gzip...)
				require.Equal(t, idemhttp.StatusReplayed, again.said())
				require.Equal(t, "true", again.header.Get(idemhttp.HeaderReplayed))
				require.EqualValues(t, 1, runs.Load())
				require.Equal(t, first.status, again.status)
				require.Equal(t, first.body, again.body)
				expires, err := http.ParseTime(again.header.Get(idemhttp.HeaderExpires))
				require.NoError(t, err)
				require.WithinDuration(t, time.Now().Add(idem.API.Retention), expires, time.Minute)
				for _, own := range []string{"Date", "Set-Cookie", "X-Private", idemhttp.HeaderStatus} {
					first.header.Del(own)
				}
				again.header.Del("Date")
				again.header.Del(idemhttp.HeaderStatus)
				again.header.Del(idemhttp.HeaderReplayed)
				require.Equal(t, first.header, again.header)
			})
		}
	})
}

// TestOneRunForManyClients: 500 at once, and every one gets the same bytes.
func TestOneRunForManyClients(t *testing.T) {
	t.Parallel()
	t.Run("HTTP/1.1", func(t *testing.T) { testOneRun(t, start) }) // one after the other: they need the machine
	t.Run("HTTP/2", func(t *testing.T) { testOneRun(t, startHTTP2) })
}

func testOneRun(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
	const clients = 500
	var runs, arrived atomic.Int64
	all, failed := make(chan struct{}), make(chan error, clients)
	handler := protect(t, boltGuard(t), func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		select { // so that the others find it at work
		case <-all:
		case err := <-failed:
			panic(err)
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "receipt %d", time.Now().UnixNano())
	}, idemhttp.MaxWait(time.Minute))
	server := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == clients {
			close(all)
		}
		handler.ServeHTTP(w, r)
	}))
	answers := make([]answer, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			var err error
			answers[i], err = try(t.Context(), server, http.MethodPost, "/", "k", strings.NewReader(`{"a":1}`), "Prefer", "wait=60")
			if err != nil {
				failed <- err
			}
		})
	}
	wg.Wait()
	require.Empty(t, failed)
	require.EqualValues(t, 1, runs.Load())
	executed := 0
	for _, a := range answers {
		require.Equal(t, http.StatusCreated, a.status, a.body)
		require.Equal(t, answers[0].body, a.body)
		require.Contains(t, []idemhttp.Status{idemhttp.StatusExecuted, idemhttp.StatusReplayed}, a.said())
		if a.said() == idemhttp.StatusExecuted {
			executed++
		}
	}
	require.Equal(t, 1, executed)
}

// sendTwice returns how often a handler that answers with status ran for two
// equal requests, and what they got.
func sendTwice(t *testing.T, status int, opts ...idemhttp.Option) (runs int64, first, again answer) {
	t.Helper()
	var n atomic.Int64
	server := serve(t, newGuard(t), func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.WriteHeader(status)
	}, opts...)
	first, again = post(t, server, "/", "k", "{}"), post(t, server, "/", "k", "{}")
	require.Equal(t, status, first.status)
	require.Equal(t, status, again.status)
	return n.Load(), first, again
}

func TestStatusIsStored(t *testing.T) {
	t.Parallel()
	for _, status := range []int{
		200, 201, 202, 203, 204, 205, 206, 226, 300, 301, 302, 303, 304, 307, 308,
		400, 402, 404, 405, 409, 410, 412, 418, 422, 428, 451, 500, 501, 502, 504, 599, 600,
	} {
		runs, first, again := sendTwice(t, status)
		require.EqualValues(t, 1, runs, status)
		require.Equal(t, idemhttp.StatusExecuted, first.said(), status)
		require.Equal(t, idemhttp.StatusReplayed, again.said(), status)
	}
}

func TestStatusReleasesTheKey(t *testing.T) {
	t.Parallel()
	rerun := idem.API
	rerun.OnInterrupted = idem.Rerun()
	for _, status := range []int{401, 403, 407, 408, 425, 429, 503} {
		for _, opts := range [][]idemhttp.Option{nil, {idemhttp.Policy(rerun)}} {
			runs, first, again := sendTwice(t, status, opts...)
			require.EqualValues(t, 2, runs, status)
			require.Equal(t, idemhttp.StatusExecuted, first.said(), status)
			require.Equal(t, idemhttp.StatusExecuted, again.said(), status)
			require.Empty(t, first.header.Get(idemhttp.HeaderExpires), status)
		}
	}
}

func TestServerErrorIsUnknownUnderRerun(t *testing.T) {
	t.Parallel()
	rerun := idem.API
	rerun.OnInterrupted = idem.Rerun()
	for _, status := range []int{500, 501, 502, 504, 599, 600} {
		runs, first, again := sendTwice(t, status, idemhttp.Policy(rerun))
		require.EqualValues(t, 2, runs, status)
		require.Equal(t, idemhttp.StatusInterrupted, first.said(), status)
		require.Equal(t, idemhttp.StatusInterrupted, again.said(), status)
	}
}

// TestServerErrorFollowsTheGuardsPolicy: without a policy of its own the
// middleware goes by the guard's, for what a 5xx means too.
func TestServerErrorFollowsTheGuardsPolicy(t *testing.T) {
	t.Parallel()
	rerun := idem.API
	rerun.OnInterrupted = idem.Rerun()
	var runs atomic.Int64
	server := serve(t, newGuard(t, idem.WithPolicy(rerun)), func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	})
	for range 2 {
		require.Equal(t, idemhttp.StatusInterrupted, post(t, server, "/", "k", "{}").said())
	}
	require.EqualValues(t, 2, runs.Load())
}

// TestReconcile: the answer that the outside world knows is replayed as if it
// had been sent.
func TestReconcile(t *testing.T) {
	t.Parallel()
	policy := idem.API
	policy.OnInterrupted = idem.Reconcile(func(context.Context, idem.Record) (idem.Verdict, error) {
		value, err := idemhttp.Response{Status: 201, Body: []byte("receipt")}.MarshalBinary()
		return idem.Done(value), err
	})
	server := serve(t, newGuard(t), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGatewayTimeout)
	}, idemhttp.Policy(policy))
	first := post(t, server, "/", "k", "{}")
	require.Equal(t, http.StatusGatewayTimeout, first.status)
	require.Equal(t, idemhttp.StatusInterrupted, first.said())
	again := post(t, server, "/", "k", "{}")
	require.Equal(t, http.StatusCreated, again.status)
	require.Equal(t, "receipt", again.body)
	require.Equal(t, idemhttp.StatusReplayed, again.said())
}
