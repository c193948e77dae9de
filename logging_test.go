package idem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// logLines runs calls on a guard that logs and returns what it logged.
func logLines(t *testing.T, level slog.Level, store idem.Store, calls func(g *idem.Guard)) (string, []map[string]any) {
	t.Helper()
	var out bytes.Buffer
	g := guardOn(t, store, idem.WithLogger(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level})))
	calls(g)
	text := out.String()
	var lines []map[string]any
	for line := range strings.Lines(text) {
		fields := make(map[string]any)
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		delete(fields, "time")
		delete(fields, "ran")
		lines = append(lines, fields)
	}
	return text, lines
}

var secretKey = idem.Key{Scope: "charge", ID: "alice@example.org"}

func TestLogHidesIDsAndContent(t *testing.T) {
	t.Parallel()
	store := newHookStore()
	text, lines := logLines(t, slog.LevelDebug, store, func(g *idem.Guard) {
		do := func(key idem.Key, input any, end error) {
			_, _ = idem.Do(t.Context(), g, key, input, returns("paid-result", end), idem.WithTraceID("trace-1"))
		}
		do(secretKey, map[string]any{"card": "visa-input"}, errors.New("error about alice@example.org"))
		do(secretKey, map[string]any{"card": "visa-input"}, nil)
		do(secretKey, map[string]any{"card": "visa-input"}, nil)
		do(secretKey, map[string]any{"card": "amex-input"}, nil)
		do(idem.Key{Scope: "charge", ID: "alice@example.org\n"}, nil, nil)
		other := idem.Key{Scope: "refund", ID: "alice@example.org"}
		do(other, nil, idem.Permanent(errors.New("error about alice@example.org")))
		do(other, nil, nil)
		store.onGet = func(_ context.Context, key idem.Key) (idem.Record, error) {
			return idem.Record{}, fmt.Errorf("%w: record of %q: its checksum does not match", idem.ErrCorrupt, key.String())
		}
		do(secretKey, nil, nil)
		store.onGet = nil
		store.onSwap = func(_ context.Context, _ uint64, rec idem.Record) (idem.Record, error) {
			return idem.Record{}, fmt.Errorf("%w: record of %q is too large", idem.ErrInvalidRecord, rec.Key.String())
		}
		do(idem.Key{Scope: "mail", ID: "alice@example.org"}, nil, nil)
	})
	for _, hidden := range []string{"alice", "example.org", "visa-input", "amex-input", "paid-result", "error about", string(store.Secret())} {
		require.NotContains(t, text, hidden)
	}
	hash := "7a64adf28737"
	want := []map[string]any{
		{"level": "DEBUG", "event": "released", "scope": "charge", "version": 1.0, "attempt": 1.0},
		{"level": "DEBUG", "event": "executed", "scope": "charge", "version": 3.0, "attempt": 1.0},
		{"level": "DEBUG", "event": "replayed", "scope": "charge", "version": 3.0, "attempt": 1.0},
		{"level": "WARN", "event": "mismatch", "scope": "charge", "version": 3.0, "attempt": 1.0, "parts": []any{"card"}},
		{"level": "DEBUG", "event": "rejected", "reason": "charset"},
		{"level": "DEBUG", "event": "failed", "scope": "refund", "version": 5.0, "attempt": 1.0},
		{"level": "DEBUG", "event": "replayed", "scope": "refund", "version": 5.0, "attempt": 1.0},
		{"level": "WARN", "event": "store-error", "scope": "charge", "error": "stored data is damaged"},
		{"level": "WARN", "event": "store-error", "scope": "mail", "version": 6.0, "attempt": 1.0, "error": "invalid record"},
	}
	for _, line := range want {
		line["msg"] = "idem"
		if line["scope"] != nil {
			line["trace_id"], line["id_hash"] = "trace-1", hash
		}
	}
	require.Equal(t, want, lines)
}

func TestLogAtWarnLevelIsQuiet(t *testing.T) {
	t.Parallel()
	_, lines := logLines(t, slog.LevelWarn, newHookStore(), func(g *idem.Guard) {
		for _, input := range []int{1, 1, 1, 2} {
			_, _ = idem.Do(t.Context(), g, order, input, returns(1, nil))
		}
		_, _ = idem.Do(t.Context(), g, idem.Key{Scope: "s", ID: "open"}, nil, returns(1, idem.Unknown(errDisk)))
	})
	require.Len(t, lines, 2)
	require.Equal(t, "mismatch", lines[0]["event"])
	require.Equal(t, "interrupted", lines[1]["event"])
}

func TestLogNamesTheStoresError(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		want string
	}{
		{errDisk, "disk gone"},
		{fmt.Errorf("commit: %w", errDisk), "commit: disk gone"},
		{&idem.PoisonedError{Path: "idem.db", Cause: errDisk}, "idem.db is poisoned, open it again to go on: disk gone"},
		{&idem.PoisonedError{Path: "idem.db", Cause: idem.ErrCorrupt}, "idem.db is poisoned, open it again to go on: stored data is damaged"},
	}
	for _, tt := range tests {
		store := newHookStore()
		_, lines := logLines(t, slog.LevelWarn, store, func(g *idem.Guard) {
			store.onGet = func(context.Context, idem.Key) (idem.Record, error) { return idem.Record{}, tt.err }
			_, err := idem.Do(t.Context(), g, secretKey, nil, mustNotRun[int](t))
			require.ErrorIs(t, err, tt.err)
			store.onGet = nil
			store.onSwap = func(context.Context, uint64, idem.Record) (idem.Record, error) { return idem.Record{}, tt.err }
			_, err = idem.Do(t.Context(), g, secretKey, nil, returns(1, nil))
			require.ErrorIs(t, err, idem.ErrNotRecorded)
		})
		require.Len(t, lines, 2)
		for _, line := range lines {
			require.Equal(t, tt.want, line["error"])
		}
	}
}
