package idemhttp_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/idemhttp"
)

func hexSHA256(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// TestResponseNotKept: what cannot be held back reaches the first client whole,
// and the work is not done again.
func TestResponseNotKept(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789", 1000)
	tests := []struct {
		name    string
		handler http.HandlerFunc
		body    string
	}{
		{"flushed", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "b")
		}, "ab"},
		{"flushed by a controller", func(w http.ResponseWriter, _ *http.Request) {
			c := http.NewResponseController(w)
			for range 3 {
				_, _ = w.Write([]byte("event\n"))
				_ = c.Flush()
			}
		}, "event\nevent\nevent\n"},
		{"flushed before anything", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "x")
		}, "x"},
		{"too large at once", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) }, large},
		{"too large in pieces", func(w http.ResponseWriter, _ *http.Request) {
			for piece := range strings.SplitAfterSeq(large, "9") {
				_, _ = w.Write([]byte(piece))
			}
		}, large},
		{"too large by ReadFrom", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader(large))
		}, large},
	}
	onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				var runs atomic.Int64
				server := start(t, protect(t, newGuard(t), func(w http.ResponseWriter, r *http.Request) {
					runs.Add(1)
					w.Header().Set("Location", "/reports/1")
					w.Header().Set("Trailer", "X-Checksum")
					if tt.name != "flushed before anything" {
						w.WriteHeader(http.StatusCreated)
					}
					tt.handler(w, r)
					w.Header().Set("X-Checksum", "c")
				}, idemhttp.MaxResponse(1000), idemhttp.MaxStored(1000)))
				first := post(t, server, "/", "k", "{}")
				require.Equal(t, idemhttp.StatusExecuted, first.said())
				require.Equal(t, tt.body, first.body)
				require.Equal(t, "c", first.trailer.Get("X-Checksum"))

				again := post(t, server, "/", "k", "{}")
				require.Equal(t, http.StatusConflict, again.status)
				require.Equal(t, idemhttp.StatusReplayed, again.said())
				require.NotEmpty(t, again.header.Get(idemhttp.HeaderExpires))
				p := again.problem(t)
				require.Equal(t, idemhttp.ProblemResponseNotKept, p.Type)
				require.Equal(t, &idemhttp.Original{
					Status: first.status, Location: "/reports/1", Length: int64(len(tt.body)), SHA256: hexSHA256(tt.body),
				}, p.Original)
				require.EqualValues(t, 1, runs.Load())
			})
		}
	})
}

// TestFlushReachesTheClient: a stream is not held back.
func TestFlushReachesTheClient(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
		seen := make(chan struct{})
		server := start(t, protect(t, newGuard(t), func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "first\n")
			w.(http.Flusher).Flush()
			<-seen
			_, _ = io.WriteString(w, "second\n")
		}))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
		require.NoError(t, err)
		req.Header.Set("Idempotency-Key", "k")
		res, err := server.Client().Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		require.True(t, lines.Scan())
		require.Equal(t, "first", lines.Text())
		close(seen)
		require.True(t, lines.Scan())
		require.Equal(t, "second", lines.Text())
	})
}

func TestSecretIsNotKept(t *testing.T) {
	t.Parallel()
	guard := newGuard(t)
	var runs atomic.Int64
	server := serve(t, guard, func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "one-time secret")
	}, idemhttp.StoreBody(idemhttp.Never))
	require.Equal(t, "one-time secret", post(t, server, "/", "k", "{}").body)
	again := post(t, server, "/", "k", "{}")
	require.Equal(t, &idemhttp.Original{Status: 201, Length: 15}, again.problem(t).Original)
	require.EqualValues(t, 1, runs.Load())
	for rec, err := range guard.Store().Scan(t.Context(), idemQuery) {
		require.NoError(t, err)
		require.Equal(t, "http", rec.Kind)
		require.NotContains(t, string(rec.Value), "secret")
	}
}

func TestHijack(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	server := serve(t, newGuard(t), func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, err = w.Write([]byte("lost"))
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\n" + err.Error())
		_ = rw.Flush()
	})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
	require.NoError(t, err)
	said, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 101 Switching Protocols\r\n\r\n"+http.ErrHijacked.Error(), string(said))

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
	require.NoError(t, err)
	req.Header.Set("Idempotency-Key", "k")
	req.Header.Set("Prefer", "wait=10") // the connection ends before the handler does
	again := roundTrip(t, server.Client(), req)
	require.Equal(t, idemhttp.ProblemResponseNotKept, again.problem(t).Type)
	require.EqualValues(t, 1, runs.Load())
}

// TestWriterBehavesLikeTheServers: what handlers rely on besides writing.
func TestWriterBehavesLikeTheServers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
		failed := make(chan error, 10)
		server := start(t, protect(t, newGuard(t), func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			failed <- c.SetWriteDeadline(time.Now().Add(time.Minute))
			failed <- c.SetReadDeadline(time.Now().Add(time.Minute))
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
			w.WriteHeader(http.StatusOK) // superfluous
			if _, err := w.Write([]byte("x")); err != http.ErrBodyNotAllowed {
				failed <- err
			}
			w.Header().Set(http.TrailerPrefix+"X-Late", "1")
			close(failed)
		}))
		a := post(t, server, "/", "k", "{}")
		require.Equal(t, http.StatusNoContent, a.status)
		for err := range failed {
			require.NoError(t, err)
		}
	})
}

func TestTrailersOfAHeldResponse(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
		server := start(t, protect(t, newGuard(t), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Declared")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Declared", "1")
			w.Header().Set(http.TrailerPrefix+"X-Undeclared", "2")
		}))
		a := post(t, server, "/", "k", "{}")
		require.Equal(t, "body", a.body)
		require.Equal(t, "1", a.trailer.Get("X-Declared"))
		require.Equal(t, "2", a.trailer.Get("X-Undeclared"))
		require.Equal(t, "body", post(t, server, "/", "k", "{}").body)
	})
}
