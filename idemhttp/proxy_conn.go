package idemhttp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// countingConn is a connection to the service that knows how many bytes were
// handed to it.
type countingConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p))) // before: some of them may be sent when it fails
	return c.Conn.Write(p)
}

// sending knows whether any byte of a request may have been sent, on whatever
// connections http.Transport has tried.
type sending struct {
	mu    sync.Mutex
	tries []try
}

type try struct {
	conn   *countingConn // nil if it is of a kind we have not made
	before int64
}

type sendingKey struct{}

// traceSent returns a context for sending a request, which sentFrom asks later.
func traceSent(ctx context.Context) context.Context {
	s := &sending{}
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { s.began(info.Conn) }}
	return httptrace.WithClientTrace(context.WithValue(ctx, sendingKey{}, s), trace)
}

// sentFrom returns what traceSent made.
func sentFrom(ctx context.Context) *sending { return ctx.Value(sendingKey{}).(*sending) }

func (s *sending) began(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	t := try{}
	if counting, ok := conn.(*countingConn); ok {
		t = try{counting, counting.written.Load()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries = append(s.tries, t)
}

// any reports whether something may have been sent by the time the request ended
// with err. After the end of a context http.Transport does not wait for what is
// being written.
func (s *sending) any(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errBrokenOff) || len(s.tries) > 0 && (errors.Is(err, context.Canceled) || isTimeout(err)) {
		return true
	}
	for _, t := range s.tries {
		if t.conn == nil || t.conn.written.Load() > t.before {
			return true
		}
	}
	return false
}

// heldWriter is what httputil.ReverseProxy writes the response to a protected
// request to. ReverseProxy flushes every response without a length, which would
// make a stream of it, and stops at a client that is gone, which is no reason to
// lose the record.
type heldWriter struct{ http.ResponseWriter }

func (w *heldWriter) Write(p []byte) (int, error) {
	if _, err := w.ResponseWriter.Write(p); errors.Is(err, http.ErrBodyNotAllowed) {
		return 0, err
	}
	return len(p), nil
}

// FlushError flushes server-sent events only.
func (w *heldWriter) FlushError() error {
	if kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type")); kind != "text/event-stream" {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack is for upgraded connections.
func (w *heldWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
