package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/idembolt/idem"
)

// NewProxy returns a handler that forwards every request to the service at
// target, which has a scheme of http or https and a host. Behind a middleware of
// this package it makes that service idempotent, whatever it is written in:
//
//	protect, err := idemhttp.New(guard, scope)
//	…
//	mux.Handle("/", protect(idemhttp.NewProxy(target)))
//
// It knows what no status can tell. If the request could not be sent, it answers
// 502 and the key is free again. If the connection broke after any of it was sent,
// or the answer did not come in time, it answers 502 or 504 and the outcome is
// unknown, as after a crash.
//
// Host, path, query and headers reach the service as they came, the key included;
// the address of the client is added to X-Forwarded-For. The service is spoken to
// over HTTP/1.1, without the proxy that the environment may name. Upgraded
// connections and streams pass through.
//
// Behind the middleware only server-sent events are streamed. Any other response
// is held back until it is complete, also one whose length the service does not
// announce, and can be repeated then.
func NewProxy(target *url.URL) http.Handler {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &proxy{httputil.ReverseProxy{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &countingConn{Conn: conn}, nil
			},
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
			IdleConnTimeout:       idleTime,
			MaxIdleConnsPerHost:   256, // all go to one host
			DisableCompression:    true,
		},
		Rewrite:      func(r *httputil.ProxyRequest) { rewrite(r, target) },
		ErrorHandler: answerUpstreamError,
	}}
}

// idleTime is how long a connection to the service is kept for another request. A
// service that closes idle connections does so without a word, and a request that
// was sent at that moment would end with an unknown outcome. None is known that
// waits less than two seconds.
const idleTime = time.Second

var errBrokenOff = errors.New("the response broke off")

type proxy struct{ reverse httputil.ReverseProxy }

func rewrite(r *httputil.ProxyRequest, target *url.URL) {
	r.SetURL(target)
	r.Out.Host = r.In.Host
	if target.RawQuery == "" {
		r.Out.URL.RawQuery = r.In.URL.RawQuery // also what does not parse
	}
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	if exchangeOf(r.In.Context()) != nil {
		r.Out.Header.Del("Expect") // the body is here
	}
	// By these names http.Transport sends a request a second time when the
	// connection broke after the first. It knows only the canonical spelling.
	for name, plain := range map[string]string{"Idempotency-Key": "idempotency-key", "X-Idempotency-Key": "x-idempotency-key"} {
		if values, ok := r.Out.Header[name]; ok {
			delete(r.Out.Header, name)
			r.Out.Header[plain] = values
		}
	}
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(traceSent(r.Context()))
	x := exchangeOf(r.Context())
	if x == nil {
		p.reverse.ServeHTTP(w, r)
		return
	}
	defer func() {
		// ReverseProxy can only abort when the service breaks off its response.
		// What was held back can still be replaced.
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler || !x.rec.restart() {
				panic(v)
			}
			answerUpstreamError(x.rec, r, errBrokenOff)
		}
	}()
	if r.Context().Value(http.ServerContextKey) == nil {
		// Without it ReverseProxy takes a response that broke off for a whole one.
		r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{}))
	}
	p.reverse.ServeHTTP(&heldWriter{w}, r)
}

// answerUpstreamError answers a request that got no response, and says what that
// means. The error is not wrapped: it must not be classified by its kind again.
func answerUpstreamError(w http.ResponseWriter, r *http.Request, err error) {
	failed := fmt.Errorf("forward the request: %v", err)
	x, p := exchangeOf(r.Context()), unreachableProblem()
	if sentFrom(r.Context()).any(err) {
		failed = idem.Unknown(failed)
		p = brokenProblem(isTimeout(err), x != nil && !x.m.failsClosed)
	}
	Fail(r.Context(), failed)
	p.WriteTo(w)
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}
