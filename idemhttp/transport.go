package idemhttp

import (
	"maps"
	"net/http"
	"strings"
)

// Transport is an http.RoundTripper that puts an Idempotency-Key on unsafe
// requests, so that a server which honours it does the work of a retried request
// once. Which key a request gets:
//
//   - one that the caller has put on the request is left alone, also an empty
//     one or a nil slice of lines, which asks for no key;
//   - else that of the request's context: WithKey, WithRandomKey, WithIntent,
//     of which the innermost counts;
//   - else none, or a random one if WithTransportRandomKeys is given.
//
// A key in the context stands for one request: retries of it must share the
// context, or one derived from it, and other requests need another key. A key
// that breaks a rule makes RoundTrip fail with an error that matches
// idem.ErrInvalidKey, and nothing is sent: without its key the request would not
// be protected.
//
// A redirect that keeps the method (307, 308) keeps the key on the same host.
// Another host gets a key derived from it, which is the same on every retry and
// from which the first one cannot be had.
//
// Retries are left to the client around the Transport or the RoundTripper below
// it. The one of net/http does retry: a request that has a header
// Idempotency-Key or X-Idempotency-Key and a body it can rewind is sent again,
// as it is, when a connection that was used before turns out to be broken.
//
// The zero value is NewTransport(nil). It is safe for concurrent use.
type Transport struct {
	base     http.RoundTripper
	header   string
	methods  map[string]bool
	random   bool
	unquoted bool
}

// NewTransport returns a Transport that sends requests with base, or with
// http.DefaultTransport if base is nil.
func NewTransport(base http.RoundTripper, opts ...TransportOption) *Transport {
	t := &Transport{base: base}
	for _, o := range opts {
		o(t)
	}
	return t
}

// RoundTrip sends req, or a copy of it with the key. See http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	value, err := t.value(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // the contract asks for it; the reader of err has nothing to do about a second one
		}
		return nil, err
	}
	if value != "" {
		req = t.withValue(req, value)
	}
	return t.next().RoundTrip(req)
}

// CloseIdleConnections closes those of the RoundTripper below, if it can. It is
// what http.Client.CloseIdleConnections looks for.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.next().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) next() http.RoundTripper {
	if t.base == nil {
		return http.DefaultTransport
	}
	return t.base
}

// value is the header value that req is to be sent with, or "" if it is to be
// sent as it is.
func (t *Transport) value(req *http.Request) (string, error) {
	first, away := redirectedFrom(req)
	lines, given := t.lines(req.Header)
	var value string
	switch {
	case given && !away:
		return "", nil
	case given:
		value = strings.Join(lines, ", ")
	case t.covers(req.Method):
		var err error
		if value, err = t.chosen(req, first); err != nil {
			return "", err
		}
	}
	if value == "" || !away {
		return value, nil
	}
	return t.serialize(derivedKey(value, strings.ToLower(req.URL.Host))), nil
}

// chosen is the header value for a request that came without one.
func (t *Transport) chosen(req, first *http.Request) (string, error) {
	if key, ok := req.Context().Value(keyContextKey{}).(string); ok {
		if err := validateKey(key); err != nil {
			return "", err
		}
		return t.serialize(key), nil
	}
	if !t.random {
		return "", nil
	}
	if sent, ok := t.lines(first.Header); ok && first != req {
		return strings.Join(sent, ", "), nil // the hops of a redirect are one call
	}
	return t.serialize(randomKey()), nil
}

func (t *Transport) serialize(key string) string {
	if t.unquoted {
		return key
	}
	return quoted(key)
}

func (t *Transport) covers(method string) bool {
	if t.methods == nil {
		return method == http.MethodPost || method == http.MethodPatch
	}
	return t.methods[method]
}

func (t *Transport) name() string {
	if t.header == "" {
		return "Idempotency-Key"
	}
	return t.header
}

// lines returns the lines of the header. It finds a name in another case too,
// which may have been put into the map directly: a second key beside it would be
// refused by the server.
func (t *Transport) lines(h http.Header) (lines []string, present bool) {
	for name, values := range h {
		if strings.EqualFold(name, t.name()) {
			lines, present = append(lines, values...), true
		}
	}
	return lines, present
}

// withValue copies req as far as it changes. It is not http.Request.Clone, which
// copies the Trailer too: the caller's body fills the one of req while it is
// read, and it would not be sent.
func (t *Transport) withValue(req *http.Request, value string) *http.Request {
	out := req.WithContext(req.Context())
	out.Header = req.Header.Clone()
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	maps.DeleteFunc(out.Header, func(name string, _ []string) bool { return strings.EqualFold(name, t.name()) })
	out.Header.Set(t.name(), value)
	return out
}
