package idemhttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/idemhttp"
)

// redirectTo answers the request with the number n by a redirect.
func redirectTo(status, n int, target func() string) func(int, http.ResponseWriter, *http.Request) {
	return func(before int, w http.ResponseWriter, r *http.Request) {
		if before == n {
			http.Redirect(w, r, target(), status)
		}
	}
}

func TestTransportRedirectOnHost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		status  int
		opts    []idemhttp.TransportOption
		context bool
		header  string
	}{
		{name: "307 context", status: 307, context: true},
		{name: "308 context", status: 308, context: true},
		{name: "307 request", status: 307, header: "mine"},
		{name: "307 random", status: 307, opts: []idemhttp.TransportOption{idemhttp.WithTransportRandomKeys()}},
		{name: "308 random", status: 308, opts: []idemhttp.TransportOption{idemhttp.WithTransportRandomKeys()}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serveKeys(t, redirectTo(tt.status, 0, func() string { return "/elsewhere" }))
			client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t), tt.opts...)}
			ctx := t.Context()
			if tt.context {
				ctx = idemhttp.WithRandomKey(ctx)
			}
			req := newRequest(t, ctx, "POST", server.URL, "body")
			if tt.header != "" {
				req.Header.Set("Idempotency-Key", tt.header)
			}
			require.Equal(t, http.StatusOK, send(t, client, req))
			require.Len(t, server.seen(), 2)
			require.NotEmpty(t, server.key(t, 0))
			require.Equal(t, server.key(t, 0), server.key(t, 1))
			require.Equal(t, "body", server.seen()[1].body)
		})
	}
}

func TestTransportRedirectToGet(t *testing.T) {
	t.Parallel()
	server := serveKeys(t, redirectTo(http.StatusSeeOther, 0, func() string { return "/result" }))
	client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t), idemhttp.WithTransportRandomKeys())}
	send(t, client, newRequest(t, idemhttp.WithKey(t.Context(), "k"), "POST", server.URL, ""))
	require.Equal(t, `"k"`, server.key(t, 0))
	require.Equal(t, "GET", server.seen()[1].method)
	require.Empty(t, server.seen()[1].lines)
}

// TestTransportRedirectToOtherHost: the other host gets a key of its own, the
// same one on every try.
func TestTransportRedirectToOtherHost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		header http.Header
	}{
		{name: "context", header: http.Header{}},
		{name: "request", header: http.Header{"Idempotency-Key": {"the key"}}},
		{name: "request in another case", header: http.Header{"idempotency-key": {"the key"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			other := serveKeys(t, nil)
			server := serveKeys(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			})
			client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t))}
			for range 2 {
				req := newRequest(t, idemhttp.WithKey(t.Context(), "the key"), "POST", server.URL, "body")
				req.Header = tt.header.Clone()
				require.Equal(t, http.StatusOK, send(t, client, req))
			}
			require.Contains(t, server.key(t, 0), "the key")
			require.Equal(t, server.key(t, 0), server.key(t, 1))
			require.Regexp(t, quotedV8, other.key(t, 0))
			require.Equal(t, other.key(t, 0), other.key(t, 1))
			for _, r := range other.seen() {
				for _, lines := range r.header {
					require.NotContains(t, strings.Join(lines, ","), "the key")
				}
			}
		})
	}
}

// TestTransportRedirectBack: where the other host sends the request next is its
// choice, so that request does not get the key either.
func TestTransportRedirectBack(t *testing.T) {
	t.Parallel()
	var server *keyServer
	other := serveKeys(t, redirectTo(307, 0, func() string { return server.URL + "/chosen" }))
	server = serveKeys(t, func(before int, w http.ResponseWriter, r *http.Request) {
		if targets := []string{"/on-host", other.URL}; before < len(targets) {
			http.Redirect(w, r, targets[before], http.StatusTemporaryRedirect)
		}
	})
	client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t), idemhttp.WithTransportRandomKeys())}
	require.Equal(t, http.StatusOK, send(t, client, newRequest(t, t.Context(), "POST", server.URL, "")))
	key := server.key(t, 0)
	require.Equal(t, key, server.key(t, 1))
	require.NotEqual(t, key, other.key(t, 0))
	require.NotEqual(t, key, server.key(t, 2))
	require.NotEqual(t, other.key(t, 0), server.key(t, 2))
}

// TestTransportRedirectStripped: a key that CheckRedirect takes off stays off.
func TestTransportRedirectStripped(t *testing.T) {
	t.Parallel()
	server := serveKeys(t, redirectTo(307, 0, func() string { return "/elsewhere" }))
	client := &http.Client{
		Transport: idemhttp.NewTransport(freshTransport(t)),
		CheckRedirect: func(req *http.Request, _ []*http.Request) error {
			req.Header.Del("Idempotency-Key")
			return nil
		},
	}
	req := newRequest(t, t.Context(), "POST", server.URL, "")
	req.Header.Set("Idempotency-Key", "mine")
	send(t, client, req)
	require.Equal(t, "mine", server.key(t, 0))
	require.Empty(t, server.seen()[1].lines)
}
