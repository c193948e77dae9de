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

// brokenStore fails on request.
type brokenStore struct {
	*idem.MemoryStore
	get, swap error
}

func (s *brokenStore) Get(ctx context.Context, key idem.Key) (idem.Record, error) {
	if s.get != nil {
		return idem.Record{}, s.get
	}
	return s.MemoryStore.Get(ctx, key)
}

func (s *brokenStore) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	if s.swap != nil {
		return idem.Record{}, s.swap
	}
	return s.MemoryStore.Swap(ctx, version, rec)
}

func brokenGuard(t *testing.T, get, swap error) *idem.Guard {
	t.Helper()
	guard, err := idem.New(&brokenStore{idem.NewMemoryStore(idem.MemoryConfig{}), get, swap})
	require.NoError(t, err)
	return guard
}

func TestStoreDown(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	echo := func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		_, _ = io.Copy(w, r.Body)
	}
	down := errors.New("disk /secret/path on fire")
	a := post(t, serve(t, brokenGuard(t, down, nil), echo), "/", "k", "{}")
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "5", a.header.Get("Retry-After"))
	require.Equal(t, idemhttp.StatusIgnored, a.said())
	require.Equal(t, idemhttp.ProblemUnavailable, a.problem(t).Type)
	require.True(t, a.problem(t).Retryable)
	require.NotContains(t, a.body, "secret")
	require.Zero(t, runs.Load())

	open := idemhttp.FailOpen(true)
	guard := brokenGuard(t, down, nil)
	a = post(t, serve(t, guard, echo, open), "/", "k", "{}")
	require.Equal(t, "{}", a.body)
	require.EqualValues(t, 1, guard.Counters().Unprotected)
	require.Equal(t, idemhttp.StatusIgnored, a.said())
	require.EqualValues(t, 1, runs.Load())

	a = post(t, serve(t, brokenGuard(t, idem.ErrCorrupt, nil), echo, open), "/", "k", "{}")
	require.Equal(t, http.StatusServiceUnavailable, a.status, "a record is there")
	require.EqualValues(t, 1, runs.Load())
}

func TestNotRecorded(t *testing.T) {
	t.Parallel()
	server := serve(t, brokenGuard(t, nil, idem.ErrFull), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "receipt")
	})
	a := post(t, server, "/", "k", "{}")
	require.Equal(t, http.StatusCreated, a.status)
	require.Equal(t, "receipt", a.body)
	require.Equal(t, idemhttp.StatusExecuted, a.said())
	require.Empty(t, a.header.Get(idemhttp.HeaderExpires))
}

// TestForeignRecords: what stands under a key and is not a response is not run
// over.
func TestForeignRecords(t *testing.T) {
	t.Parallel()
	guard := newGuard(t)
	var runs atomic.Int64
	server := serve(t, guard, func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	})
	require.Equal(t, http.StatusInternalServerError, post(t, server, "/", "k", "{}").status)
	tests := []struct {
		name   string
		state  idem.State
		value  []byte
		status int
		kind   string
	}{
		{"settled as done by hand", idem.Completed, nil, 409, idemhttp.ProblemResponseNotKept},
		{"settled as failed by hand", idem.Failed, nil, 409, idemhttp.ProblemFailed},
		{"value of something else", idem.Completed, []byte(`"a function's"`), 500, idemhttp.ProblemUnreadable},
	}
	for _, tt := range tests {
		rec, err := guard.Store().Get(t.Context(), idem.Key{Scope: "test", ID: "k"})
		require.NoError(t, err)
		rec.State, rec.Value = tt.state, tt.value
		_, err = guard.Store().Swap(t.Context(), rec.Version, rec)
		require.NoError(t, err)
		a := post(t, server, "/", "k", "{}")
		require.Equal(t, tt.status, a.status, tt.name)
		require.Equal(t, tt.kind, a.problem(t).Type, tt.name)
	}
	require.EqualValues(t, 1, runs.Load())
}

// TestRestart: a repeat is answered by the next process, which finds the file.
func TestRestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "http.db")
	var first answer
	for i := range 2 {
		guard, err := idem.Open(path)
		require.NoError(t, err)
		server := serve(t, guard, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("receipt", i+1))
		})
		a := post(t, server, "/", "k", "{}", "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		if i == 0 {
			first = a
		}
		require.Equal(t, first.body, a.body)
		rec, err := guard.Store().Get(t.Context(), idem.Key{Scope: "test", ID: "k"})
		require.NoError(t, err)
		require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", rec.TraceID)
		require.NoError(t, guard.Close())
		require.Equal(t, http.StatusServiceUnavailable, post(t, server, "/", "k", "{}").status)
	}
}
