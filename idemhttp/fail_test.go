package idemhttp_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// TestFail: what the handler says of its work counts, not the status.
func TestFail(t *testing.T) {
	t.Parallel()
	oops := errors.New("provider: oops")
	rerun := idem.API
	rerun.OnInterrupted = idem.Rerun()
	tests := []struct {
		name   string
		err    error
		status int
		opts   []idemhttp.Option
		first  idemhttp.Status
		again  idemhttp.Status
	}{
		{"nothing was done", oops, http.StatusOK, nil, idemhttp.StatusExecuted, idemhttp.StatusExecuted},
		{"nothing was done, in doubt by its status", oops, http.StatusBadGateway, nil, idemhttp.StatusExecuted, idemhttp.StatusExecuted},
		{"unknown", idem.Unknown(oops), http.StatusAccepted, nil, idemhttp.StatusInterrupted, idemhttp.StatusInterrupted},
		{"timeout", context.DeadlineExceeded, http.StatusOK, nil, idemhttp.StatusInterrupted, idemhttp.StatusInterrupted},
		{"final", idem.Permanent(oops), http.StatusForbidden, nil, idemhttp.StatusExecuted, idemhttp.StatusReplayed},
		{"final under rerun", idem.Permanent(oops), http.StatusInternalServerError, []idemhttp.Option{idemhttp.Policy(rerun)}, idemhttp.StatusExecuted, idemhttp.StatusReplayed},
		{"taken back", nil, http.StatusOK, nil, idemhttp.StatusExecuted, idemhttp.StatusReplayed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			server := serve(t, newGuard(t), func(w http.ResponseWriter, r *http.Request) {
				runs.Add(1)
				require.True(t, idemhttp.Fail(r.Context(), idem.Unknown(oops)))
				require.True(t, idemhttp.Fail(r.Context(), tt.err))
				w.WriteHeader(tt.status)
			}, tt.opts...)
			first := post(t, server, "/", "k", "{}")
			require.Equal(t, tt.status, first.status)
			require.Equal(t, tt.first, first.said())
			again := post(t, server, "/", "k", "{}")
			require.Equal(t, tt.again, again.said())
			if tt.again == idemhttp.StatusReplayed {
				require.Equal(t, tt.status, again.status)
			}
			require.EqualValues(t, map[bool]int{true: 2, false: 1}[tt.again == idemhttp.StatusExecuted], runs.Load())
		})
	}
	require.False(t, idemhttp.Fail(t.Context(), oops))
}
