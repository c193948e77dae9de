package idemhttp

// TransportOption configures a Transport.
type TransportOption func(*Transport)

// WithTransportMethods sets the methods of requests that get a key, in upper
// case as net/http has them. The default is POST and PATCH: the others are safe
// or, as PUT and DELETE, idempotent by definition, which is not to say that
// every server keeps to it.
func WithTransportMethods(methods ...string) TransportOption {
	covered := make(map[string]bool, len(methods))
	for _, m := range methods {
		covered[m] = true
	}
	return func(t *Transport) { t.methods = covered }
}

// WithTransportHeader sets the name of the header. The default, also for "", is
// Idempotency-Key. Under most other names net/http does not know the key and
// does not itself retry on a broken connection.
func WithTransportHeader(name string) TransportOption {
	return func(t *Transport) { t.header = name }
}

// WithTransportRandomKeys puts a fresh random key on every request that would
// get none. It is the same for all that the RoundTripper below and redirects make
// of one call of RoundTrip, and another for the next call, also if that is a
// retry by the client around the Transport: for those see WithRandomKey.
func WithTransportRandomKeys() TransportOption {
	return func(t *Transport) { t.random = true }
}

// WithTransportUnquotedKeys sends keys as they are and not as a quoted string of
// RFC 9651, for servers that want a bare UUID.
func WithTransportUnquotedKeys() TransportOption {
	return func(t *Transport) { t.unquoted = true }
}
