package idemhttp_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

const chunkKind = "http.chunk"

// largeBody is not the same anywhere, so that a chunk out of place shows.
func largeBody(bytes int) string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for b.Len() < bytes {
		b.WriteByte(byte(r.IntN(256)))
	}
	return b.String()
}

func writeInPieces(w io.Writer, body string) {
	for len(body) > 0 {
		n := min(len(body), 10_007)
		_, _ = io.WriteString(w, body[:n])
		body = body[n:]
	}
}

func chunksIn(t *testing.T, store idem.Store) (chunks []idem.Record) {
	t.Helper()
	for rec, err := range store.Scan(t.Context(), idem.Query{}) {
		require.NoError(t, err)
		if rec.Kind == chunkKind {
			chunks = append(chunks, rec)
		}
	}
	return chunks
}

func TestLargeResponseIsReplayed(t *testing.T) {
	t.Parallel()
	body := largeBody(3<<18 + 100) // of three chunks and a piece
	for _, size := range []int{2000, 1 << 18, 1<<18 + 1, len(body)} {
		onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
			var runs atomic.Int64
			guard := boltGuard(t)
			server := start(t, protect(t, guard, func(w http.ResponseWriter, _ *http.Request) {
				runs.Add(1)
				w.Header().Set("Content-Type", "application/octet-stream")
				w.Header().Set("Etag", `"v1"`)
				w.Header().Set("Set-Cookie", "a=b")
				w.WriteHeader(http.StatusCreated)
				writeInPieces(w, body[:size])
			}, idemhttp.MaxResponse(1000)))
			require.Equal(t, body[:size], post(t, server, "/", "k", "{}").body)
			for range 2 {
				again := post(t, server, "/", "k", "{}")
				require.Equal(t, http.StatusCreated, again.status)
				require.Equal(t, idemhttp.StatusReplayed, again.said())
				require.Equal(t, `"v1"`, again.header.Get("Etag"))
				require.Equal(t, "application/octet-stream", again.header.Get("Content-Type"))
				require.NotEmpty(t, again.header.Get("Content-Length"))
				require.Empty(t, again.header.Get("Set-Cookie"))
				require.True(t, body[:size] == again.body, "another body")
			}
			require.EqualValues(t, 1, runs.Load())
			rec, err := guard.Store().Get(t.Context(), idem.Key{Scope: "test", ID: "k"})
			require.NoError(t, err)
			chunks := chunksIn(t, guard.Store())
			require.Len(t, chunks, (size+1<<18-1)>>18)
			for _, c := range chunks {
				require.True(t, c.ExpiresAt.After(rec.ExpiresAt), "the record outlives its chunks")
			}
		})
	}
}

// TestLargeResponseLeavesNoChunks: where a record does not need them they are
// gone at once.
func TestLargeResponseLeavesNoChunks(t *testing.T) {
	t.Parallel()
	body := largeBody(1 << 20)
	tests := []struct {
		name   string
		status int
		panics bool
		opts   []idemhttp.Option
		again  string // type of the problem a repeat gets; "" if it runs
	}{
		{"over the limit", http.StatusOK, false, []idemhttp.Option{idemhttp.MaxStored(1<<20 - 1)}, idemhttp.ProblemResponseNotKept},
		{"storing no body", http.StatusOK, false, []idemhttp.Option{idemhttp.StoreBody(idemhttp.Never)}, idemhttp.ProblemResponseNotKept},
		{"released", http.StatusServiceUnavailable, false, nil, ""},
		{"panic", http.StatusOK, true, nil, idemhttp.ProblemInterrupted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			guard := newGuard(t)
			server := serve(t, guard, func(w http.ResponseWriter, _ *http.Request) {
				if runs.Add(1) > 1 {
					return
				}
				w.WriteHeader(tt.status)
				writeInPieces(w, body)
				if tt.panics {
					panic(http.ErrAbortHandler)
				}
			}, append(tt.opts, idemhttp.MaxResponse(1000))...)
			first, err := try(t.Context(), server, http.MethodPost, "/", "k", strings.NewReader("{}"))
			require.Equal(t, tt.panics, err != nil)
			require.True(t, tt.panics || body == first.body)
			require.Empty(t, chunksIn(t, guard.Store()))
			again := post(t, server, "/", "k", "{}")
			if tt.again == "" {
				require.Equal(t, idemhttp.StatusExecuted, again.said())
				return
			}
			require.Equal(t, tt.again, again.problem(t).Type)
			require.EqualValues(t, 1, runs.Load())
		})
	}
}

// TestLargeResponseDamaged: a repeat never gets half a body for a whole one, and
// never runs.
func TestLargeResponseDamaged(t *testing.T) {
	t.Parallel()
	body := largeBody(1 << 20)
	setUp := func(t *testing.T) (*httptest.Server, idem.Store, []idem.Record) {
		var runs atomic.Int64
		guard := newGuard(t)
		server := serve(t, guard, func(w http.ResponseWriter, _ *http.Request) {
			runs.Add(1)
			writeInPieces(w, body)
		}, idemhttp.MaxResponse(1000))
		require.Equal(t, idemhttp.StatusExecuted, post(t, server, "/", "k", "{}").said())
		t.Cleanup(func() { require.EqualValues(t, 1, runs.Load()) })
		chunks := chunksIn(t, guard.Store())
		require.Len(t, chunks, 4)
		return server, guard.Store(), chunks
	}
	t.Run("chunk gone", func(t *testing.T) {
		t.Parallel()
		server, store, chunks := setUp(t)
		require.NoError(t, store.Delete(t.Context(), chunks[3].Key, chunks[3].Version))
		p := post(t, server, "/", "k", "{}").problem(t)
		require.Equal(t, idemhttp.ProblemResponseNotKept, p.Type)
		require.EqualValues(t, len(body), p.Original.Length)
	})
	for name, change := range map[string]func([]byte) []byte{
		"chunk changed":   func(v []byte) []byte { v[7] ^= 1; return v },
		"chunk shortened": func(v []byte) []byte { return v[:len(v)-1] },
		"chunk longer":    func(v []byte) []byte { return append(v, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, store, chunks := setUp(t)
			changed := chunks[2]
			changed.Value = change(changed.Value)
			_, err := store.Swap(t.Context(), changed.Version, changed)
			require.NoError(t, err)
			_, err = try(t.Context(), server, http.MethodPost, "/", "k", strings.NewReader("{}"))
			require.Error(t, err, "a body that is not the first one's was taken for it")
		})
	}
}

// noChunks is a store that refuses chunks, or to scan for them.
type noChunks struct {
	idem.Store
	create, scan error
}

func (s *noChunks) Create(ctx context.Context, rec idem.Record) (idem.Record, error) {
	if rec.Kind == chunkKind && s.create != nil {
		return idem.Record{}, s.create
	}
	return s.Store.Create(ctx, rec)
}

func (s *noChunks) Scan(ctx context.Context, q idem.Query) iter.Seq2[idem.Record, error] {
	if s.scan != nil {
		return func(yield func(idem.Record, error) bool) { yield(idem.Record{}, s.scan) }
	}
	return s.Store.Scan(ctx, q)
}

func TestLargeResponseStoreFails(t *testing.T) {
	t.Parallel()
	store := &noChunks{Store: idem.NewMemoryStore(idem.MemoryConfig{}), create: idem.ErrFull}
	guard, err := idem.New(store, idem.WithSecret([]byte("0123456789abcdef")))
	require.NoError(t, err)
	body := largeBody(1 << 19)
	server := serve(t, guard, func(w http.ResponseWriter, _ *http.Request) { writeInPieces(w, body) }, idemhttp.MaxResponse(1000))
	require.True(t, body == post(t, server, "/", "full", "{}").body)
	require.Equal(t, idemhttp.ProblemResponseNotKept, post(t, server, "/", "full", "{}").problem(t).Type)

	store.create = nil
	require.True(t, body == post(t, server, "/", "down", "{}").body)
	store.scan = errors.New("disk on fire")
	require.Equal(t, idemhttp.ProblemUnavailable, post(t, server, "/", "down", "{}").problem(t).Type)
	store.scan = nil
	require.True(t, body == post(t, server, "/", "down", "{}").body)
}
