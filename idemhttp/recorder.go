package idemhttp

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// recorder is the ResponseWriter of a protected handler. It holds the response
// back until its record is durable. Where that cannot be done, because the
// response is too large, flushed or hijacked, it passes everything through from
// then on and keeps only length and hash.
//
// It has no Unwrap: who wrote to the connection around it would have a response
// that the record does not know. The methods that http.ResponseController looks
// for are in recorder_conn.go.
type recorder struct {
	w       http.ResponseWriter
	limit   int
	header  http.Header // the handler's, until it is sent
	status  int         // 0 until WriteHeader
	written http.Header // header as it was at WriteHeader
	body    bytes.Buffer
	passed  Omission  // Kept while the response is held back
	length  int64     // of the body, once it is passed through
	sum     hash.Hash // likewise
	chunks  *chunks   // where it is stored if it is too large; nil if nowhere
}

func newRecorder(w http.ResponseWriter, limit int, c *chunks) *recorder {
	return &recorder{w: w, limit: limit, chunks: c, header: cloneHeader(w.Header())}
}

func cloneHeader(h http.Header) http.Header {
	if len(h) == 0 {
		return make(http.Header)
	}
	return h.Clone()
}

func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader sends informational statuses at once and remembers the final one.
func (rec *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 { // as net/http does
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	if rec.status != 0 || rec.passed == Hijacked {
		return
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		replaceHeader(rec.w.Header(), rec.header)
		rec.w.WriteHeader(status)
		return
	}
	rec.status, rec.written = status, rec.header.Clone()
}

func (rec *recorder) Write(p []byte) (int, error) {
	if err := rec.beforeWrite(len(p)); err != nil {
		return 0, err
	}
	if rec.passed == Kept {
		return rec.body.Write(p)
	}
	return rec.pass(p)
}

// WriteString is Write without a copy of its own.
func (rec *recorder) WriteString(s string) (int, error) {
	if err := rec.beforeWrite(len(s)); err != nil {
		return 0, err
	}
	if rec.passed == Kept {
		return rec.body.WriteString(s)
	}
	return rec.pass([]byte(s))
}

// ReadFrom copies through Write, so that the length is watched. It gives up the
// shortcut from file to socket, which could not be hashed.
func (rec *recorder) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{rec}, src)
}

// beforeWrite turns to passing through if n more bytes are too many to hold.
func (rec *recorder) beforeWrite(n int) error {
	if rec.passed == Hijacked {
		return http.ErrHijacked
	}
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	if !bodyAllowed(rec.status) {
		return http.ErrBodyNotAllowed
	}
	if rec.passed == Kept && rec.body.Len()+n > rec.limit {
		return rec.passThrough(TooLarge)
	}
	return nil
}

// passThrough sends what was held back and stops holding back.
func (rec *recorder) passThrough(why Omission) error {
	if rec.passed != Kept {
		return nil
	}
	rec.passed, rec.sum = why, sha256.New()
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	replaceHeader(rec.w.Header(), rec.written)
	rec.w.Header().Set(HeaderStatus, string(StatusExecuted))
	rec.w.WriteHeader(rec.status)
	held := rec.body.Bytes()
	rec.body = bytes.Buffer{}
	if len(held) == 0 {
		return nil
	}
	_, err := rec.pass(held)
	return err
}

// pass writes to the client. A client that is gone does not end the handler's
// accounting: the hash is that of what the handler wrote.
func (rec *recorder) pass(p []byte) (int, error) {
	rec.length += int64(len(p))
	rec.sum.Write(p)
	if rec.chunks != nil && rec.passed == TooLarge {
		rec.chunks.add(p)
	}
	return rec.w.Write(p)
}

// restart forgets a response that was held back, so that another can take its
// place. It reports false if it is too late for that.
func (rec *recorder) restart() bool {
	if rec.passed != Kept {
		return false
	}
	rec.status, rec.header, rec.written = 0, cloneHeader(rec.w.Header()), nil
	rec.body.Reset()
	return true
}

// response is what the record holds, after the handler has returned.
func (rec *recorder) response(kept map[string]bool, keep Keep) Response {
	if rec.status == 0 {
		rec.finalStatus()
	}
	r := Response{Status: rec.status, Omitted: rec.passed}
	switch {
	case rec.passed == Kept && keep == Never:
		r.Omitted, r.Length = Withheld, int64(rec.body.Len())
	case rec.passed == Kept:
		r.Body = rec.body.Bytes()
		rec.sniff()
	case rec.passed != Hijacked:
		r.Length = rec.length
		if keep == Always {
			rec.sum.Sum(r.SHA256[:0])
		}
		rec.finishChunks(&r)
	}
	r.Header = pick(rec.written, kept)
	return r
}

// finishChunks notes in r where the body was stored, if it was.
func (rec *recorder) finishChunks(r *Response) {
	if rec.chunks == nil || rec.passed != TooLarge {
		return
	}
	if n, ok := rec.chunks.finish(); ok {
		r.Omitted, r.Chunks, r.ChunkSet = InChunks, n, rec.chunks.set
	}
}

// finalStatus is that of a handler which has set none.
func (rec *recorder) finalStatus() {
	if rec.passed == Hijacked {
		rec.status, rec.written = http.StatusSwitchingProtocols, http.Header{}
		return
	}
	rec.WriteHeader(http.StatusOK)
}

// sniff sets the type of the content as net/http would on sending it, so that a
// repeat has the same, whatever version of Go sends it.
func (rec *recorder) sniff() {
	_, has := rec.written["Content-Type"]
	if !has && rec.body.Len() > 0 && rec.written.Get("Content-Encoding") == "" {
		rec.written.Set("Content-Type", http.DetectContentType(rec.body.Bytes()))
	}
}

// send gives the client what was held back, or the rest of what was not.
func (rec *recorder) send(s Status, expires string) {
	h := rec.w.Header()
	switch rec.passed {
	case Hijacked:
		return
	case Kept:
		if rec.status == 0 {
			rec.finalStatus()
		}
		replaceHeader(h, rec.written)
		h.Set(HeaderStatus, string(s))
		if expires != "" {
			h.Set(HeaderExpires, expires)
		}
		if !rec.undeclaredTrailers(h) {
			setLength(h, rec.status, int64(rec.body.Len()))
		}
		rec.w.WriteHeader(rec.status)
		_, _ = rec.w.Write(rec.body.Bytes()) // a client that is gone cannot be told
	}
	rec.undeclaredTrailers(h)
	rec.declaredTrailers(h)
}

// undeclaredTrailers hands on trailers that were set by http.TrailerPrefix. They
// count only if net/http sees one before it chooses how to send the body.
func (rec *recorder) undeclaredTrailers(h http.Header) (any bool) {
	for name, values := range rec.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			h[name], any = values, true
		}
	}
	return any
}

// declaredTrailers hands on the values of trailers that the header announced.
func (rec *recorder) declaredTrailers(h http.Header) {
	for _, line := range rec.written["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if values, ok := rec.header[name]; ok {
				h[name] = values
			}
		}
	}
}

// setLength says how long the body is: also to those who would otherwise get it
// in chunks, and whatever the handler has promised.
func setLength(h http.Header, status int, n int64) {
	if !bodyAllowed(status) {
		h.Del("Content-Length")
		return
	}
	if _, trailers := h["Trailer"]; trailers || h.Get("Transfer-Encoding") != "" {
		return // HTTP/1 has trailers only after chunks
	}
	h.Set("Content-Length", strconv.FormatInt(n, 10))
}

// bodyAllowed reports whether a response with this status may have a body.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
