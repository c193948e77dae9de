package idem_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func TestCallOptionsOverrideTheGuards(t *testing.T) {
	t.Parallel()
	type traceKey struct{}
	ctx := context.WithValue(t.Context(), traceKey{}, "from-context")
	g := memoryGuard(t, idem.WithPolicy(idem.Payments), idem.WithKind("pay"),
		idem.WithTraceFrom(func(ctx context.Context) string { id, _ := ctx.Value(traceKey{}).(string); return id }))
	tests := []struct {
		name      string
		ctx       context.Context
		opts      []idem.CallOption
		kind      string
		trace     string
		retention time.Duration
	}{
		{"the guard's", t.Context(), nil, "pay", "", idem.Payments.Retention},
		{"trace from the context", ctx, nil, "pay", "from-context", idem.Payments.Retention},
		{"trace of the call", ctx, []idem.CallOption{idem.WithTraceID("own")}, "pay", "own", idem.Payments.Retention},
		{"kind", ctx, []idem.CallOption{idem.WithKind("refund")}, "refund", "from-context", idem.Payments.Retention},
		{"policy", ctx, []idem.CallOption{idem.WithPolicy(idem.Orders)}, "pay", "from-context", idem.Orders.Retention},
		{"last one wins", ctx, []idem.CallOption{idem.WithRetention(time.Hour), idem.WithPolicy(idem.Orders)}, "pay", "from-context", idem.Orders.Retention},
		{"retention of a policy without retry window", ctx, []idem.CallOption{
			idem.WithPolicy(idem.Policy{Retention: 1, Lease: time.Second}), idem.WithRetention(time.Hour),
		}, "pay", "from-context", time.Hour},
		{"long trace is cut at a rune", t.Context(), []idem.CallOption{idem.WithTraceID("x" + strings.Repeat("é", 100))}, "pay", "x" + strings.Repeat("é", 63), idem.Payments.Retention},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := idem.Do(tt.ctx, g, idem.Key{Scope: "s", ID: tt.name}, nil, returns(1, nil), tt.opts...)
			require.NoError(t, err)
			require.Equal(t, tt.kind, res.Record.Kind)
			require.Equal(t, tt.trace, res.Record.TraceID)
			require.Equal(t, tt.retention, res.Record.ExpiresAt.Sub(res.Record.UpdatedAt), "counted from the end of the run")
		})
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		opt  idem.CallOption
		want string
	}{
		{"no retention", idem.WithRetention(0), "Retention"},
		{"retention within the retry window", idem.WithRetention(idem.API.RetryWindow), "Retention"},
		{"zero policy", idem.WithPolicy(idem.Policy{}), "Retention"},
		{"negative wait", idem.WithWait(-1), "wait"},
		{"no kind", idem.WithKind(""), "kind"},
		{"long kind", idem.WithKind(strings.Repeat("k", 33)), "kind"},
		{"no classifier", idem.WithClassifier(nil), "classifier"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := newHookStore()
			_, err := idem.New(store, tt.opt)
			require.ErrorContains(t, err, tt.want)
			_, err = idem.Do(t.Context(), guardOn(t, store), order, nil, mustNotRun[int](t), tt.opt)
			require.ErrorContains(t, err, tt.want)
			require.Zero(t, store.writes.Load())
		})
	}
}
