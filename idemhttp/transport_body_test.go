package idemhttp_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// trailingBody sets a trailer of its request when it has been read.
type trailingBody struct {
	io.Reader
	req *http.Request
}

func (b *trailingBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		b.req.Trailer.Set("Checksum", "abc")
	}
	return n, err
}

func (*trailingBody) Close() error { return nil }

func TestTransportTrailer(t *testing.T) {
	t.Parallel()
	trailer := make(chan string, 1)
	server := serveKeys(t, func(_ int, _ http.ResponseWriter, r *http.Request) { trailer <- r.Trailer.Get("Checksum") })
	client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t))}
	req := newRequest(t, idemhttp.WithKey(t.Context(), "k"), "POST", server.URL, "")
	req.Trailer = http.Header{"Checksum": nil}
	req.Body, req.GetBody, req.ContentLength = &trailingBody{strings.NewReader("body"), req}, nil, -1
	send(t, client, req)
	require.Equal(t, "abc", <-trailer)
	require.Equal(t, `"k"`, server.key(t, 0))
}

type closedBody struct {
	io.Reader
	closed chan struct{}
	once   sync.Once
}

func newClosedBody() *closedBody {
	return &closedBody{Reader: strings.NewReader("body"), closed: make(chan struct{})}
}

func (b *closedBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// requireClosed waits, since a RoundTripper may close after it has returned.
func (b *closedBody) requireClosed(t *testing.T) {
	t.Helper()
	select {
	case <-b.closed:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the body was not closed")
	}
}

func TestTransportRefusesBadKeys(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		key    string
		reason idem.RejectReason
	}{
		{"empty", "", idem.RejectMissing},
		{"long", strings.Repeat("k", 256), idem.RejectTooLong},
		{"line break", "a\r\nX-Other: b", idem.RejectCharset},
		{"not ASCII", "schlüssel", idem.RejectCharset},
		{"delete", "a\x7f", idem.RejectCharset},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serveKeys(t, nil)
			body := newClosedBody()
			req, err := http.NewRequestWithContext(idemhttp.WithKey(t.Context(), tt.key), "POST", server.URL, body)
			require.NoError(t, err)
			_, err = idemhttp.NewTransport(freshTransport(t), idemhttp.WithTransportRandomKeys()).RoundTrip(req)
			require.ErrorIs(t, err, idem.ErrInvalidKey)
			var keyErr *idem.KeyError
			require.ErrorAs(t, err, &keyErr)
			require.Equal(t, tt.reason, keyErr.Reason)
			body.requireClosed(t)
			require.Empty(t, server.seen())
		})
	}
}

func TestTransportZeroIntent(t *testing.T) {
	t.Parallel()
	server := serveKeys(t, nil)
	client := &http.Client{Transport: idemhttp.NewTransport(freshTransport(t))}
	var none idemhttp.Intent
	_, err := client.Do(newRequest(t, idemhttp.WithIntent(t.Context(), none), "POST", server.URL, ""))
	require.ErrorIs(t, err, idem.ErrInvalidKey)
	_, err = client.Do(newRequest(t, idemhttp.WithKey(t.Context(), none.ChildKey("charge")), "POST", server.URL, ""))
	require.ErrorIs(t, err, idem.ErrInvalidKey)
	require.ErrorContains(t, none.Done(t.Context()), "not begun")
	require.Empty(t, server.seen())
}

func TestTransportClosesBodyWhenRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	body := newClosedBody()
	req, err := http.NewRequestWithContext(idemhttp.WithKey(t.Context(), "k"), "POST", url, body)
	require.NoError(t, err)
	_, err = idemhttp.NewTransport(freshTransport(t)).RoundTrip(req)
	require.Error(t, err)
	body.requireClosed(t)
	require.Empty(t, req.Header)
}
