package idemhttp_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// discard is a ResponseWriter without a network.
type discard struct {
	header http.Header
	status int
	body   []byte
}

func (w *discard) Header() http.Header         { return w.header }
func (w *discard) WriteHeader(status int)      { w.status = status }
func (w *discard) Write(p []byte) (int, error) { w.body = p; return len(p), nil }

const benchBody = `{"amount":1999,"currency":"EUR","customer":"c-1042","lines":[{"sku":"a","n":1}]}`

func benchHandler(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/charges/1")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"id":"ch_1","amount":1999,"currency":"EUR","status":"captured"}`)
}

func benchmark(b *testing.B, handler http.Handler, status int, key func(i int) string) {
	b.Helper()
	b.ReportAllocs()
	body := bytes.NewReader([]byte(benchBody))
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/charges?expand=customer", nil)
	require.NoError(b, err)
	r.Body, r.ContentLength = io.NopCloser(body), int64(len(benchBody))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; b.Loop(); i++ {
		body.Reset([]byte(benchBody))
		r.Header["Idempotency-Key"] = []string{key(i)}
		w := &discard{header: make(http.Header)}
		handler.ServeHTTP(w, r)
		if w.status != status {
			b.Fatalf("status %d: %s", w.status, w.body)
		}
	}
}

func sameKey(int) string { return "8e03978e-40d5-43dd-bc93-6894a57f9324" }

func BenchmarkBare(b *testing.B) {
	benchmark(b, http.HandlerFunc(benchHandler), http.StatusCreated, sameKey)
}

func BenchmarkReplay(b *testing.B) {
	benchmark(b, protect(b, boltGuard(b), benchHandler), http.StatusCreated, sameKey)
}

func BenchmarkMismatch(b *testing.B) {
	handler := protect(b, boltGuard(b), benchHandler)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/other", nil)
	require.NoError(b, err)
	r.Header.Set("Idempotency-Key", sameKey(0))
	handler.ServeHTTP(&discard{header: make(http.Header)}, r)
	benchmark(b, handler, http.StatusUnprocessableEntity, sameKey)
}

// BenchmarkExecuteInMemory is the cost of a protected request without the disk.
func BenchmarkExecuteInMemory(b *testing.B) {
	benchmark(b, protect(b, newGuard(b), benchHandler), http.StatusCreated, strconv.Itoa)
}

func BenchmarkExecute(b *testing.B) {
	benchmark(b, protect(b, boltGuard(b), benchHandler), http.StatusCreated, strconv.Itoa)
}
