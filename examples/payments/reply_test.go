package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/idemhttp"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	const executed, replayed = idemhttp.StatusExecuted, idemhttp.StatusReplayed
	tests := []struct {
		name    string
		code    int
		status  idemhttp.Status
		problem string // its JSON
		want    verdict
	}{
		{"charged", 201, executed, "", paid},
		{"charged before", 201, replayed, "", paid},
		{"declined", 422, executed, "", refused},
		{"declined before", 422, replayed, "", refused},
		{"turned away", 401, "", "", stuck},
		{"turned away by the handler", 403, executed, "", stuck},
		{"too many requests", 429, executed, "", unsettled},
		{"timeout at the provider", 504, idemhttp.StatusInterrupted, "", unsettled},
		{"timeout at a proxy", 504, "", "", unsettled},
		{"the page of a hotspot", 200, "", "", stuck},
		{"not found by a proxy", 404, "", "", stuck},
		{"in progress", 409, idemhttp.StatusInProgress, `{"type":"urn:idem:problem:in-progress","retryable":true}`, unsettled},
		{"interrupted, and asked about", 409, idemhttp.StatusInterrupted, `{"type":"urn:idem:problem:interrupted","retryable":true}`, unsettled},
		{"interrupted, and closed", 409, idemhttp.StatusInterrupted, `{"type":"urn:idem:problem:interrupted"}`, stuck},
		{"another amount", 422, idemhttp.StatusMismatch, `{"type":"urn:idem:problem:mismatch"}`, stuck},
		{"settled as failed", 409, replayed, `{"type":"urn:idem:problem:failed"}`, refused},
		{"done, not kept", 409, replayed, `{"type":"urn:idem:problem:response-not-kept"}`, stuck},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			resp := &http.Response{StatusCode: tt.code, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(tt.problem))}
			resp.Header.Set(idemhttp.HeaderStatus, string(tt.status))
			resp.Header.Set("Retry-After", "2")
			if tt.problem != "" {
				resp.Header.Set("Content-Type", "application/problem+json")
			}
			r, err := readReply(resp)
			require.NoError(t, err)
			require.Equal(t, tt.want, r.verdict())
			require.Equal(t, 2*time.Second, r.retryAfter)
		})
	}
}
