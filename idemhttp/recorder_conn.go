package idemhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"
)

var (
	_ http.Flusher    = (*recorder)(nil)
	_ http.Hijacker   = (*recorder)(nil)
	_ io.ReaderFrom   = (*recorder)(nil)
	_ io.StringWriter = (*recorder)(nil)
)

// Flush sends what was written so far, which ends the holding back.
func (rec *recorder) Flush() { _ = rec.FlushError() }

// FlushError is what http.ResponseController.Flush calls.
func (rec *recorder) FlushError() error {
	if rec.passed == Hijacked {
		return http.ErrHijacked
	}
	if err := rec.passThrough(Streamed); err != nil {
		return err
	}
	return http.NewResponseController(rec.w).Flush()
}

// Hijack lets the handler take the connection over. What it says there is not
// known and cannot be repeated.
func (rec *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if rec.status != 0 { // a handler may write its 101 first
		if err := rec.passThrough(Streamed); err != nil {
			return nil, nil, err
		}
	}
	conn, rw, err := http.NewResponseController(rec.w).Hijack()
	if err == nil {
		rec.passed = Hijacked
	}
	return conn, rw, err
}

// SetReadDeadline is for http.ResponseController. The request's body was read
// before the handler began.
func (rec *recorder) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(rec.w).SetReadDeadline(t)
}

// SetWriteDeadline is for http.ResponseController.
func (rec *recorder) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(rec.w).SetWriteDeadline(t)
}

// EnableFullDuplex is for http.ResponseController.
func (rec *recorder) EnableFullDuplex() error {
	return http.NewResponseController(rec.w).EnableFullDuplex()
}
