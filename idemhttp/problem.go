package idemhttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Types of the problems (RFC 9457) this package answers with. They are names,
// not addresses, and do not change.
const (
	ProblemKeyMissing      = "urn:idem:problem:key-missing"       // 400, no key where one is required
	ProblemKeyInvalid      = "urn:idem:problem:key-invalid"       // 400, the key breaks a rule
	ProblemScope           = "urn:idem:problem:scope"             // 400, the scope function refused the request
	ProblemBodyUnreadable  = "urn:idem:problem:body-unreadable"   // 400, the body broke off
	ProblemBodyTimeout     = "urn:idem:problem:body-timeout"      // 408, the body came too slowly
	ProblemBodyTooLarge    = "urn:idem:problem:body-too-large"    // 413, the body is over MaxBody
	ProblemInProgress      = "urn:idem:problem:in-progress"       // 409, the first request is still being worked on
	ProblemMismatch        = "urn:idem:problem:mismatch"          // 422, the key was used with another request
	ProblemInterrupted     = "urn:idem:problem:interrupted"       // 409, nobody knows whether the work was done
	ProblemResponseNotKept = "urn:idem:problem:response-not-kept" // 409, done, but the response cannot be repeated
	ProblemFailed          = "urn:idem:problem:failed"            // 409, settled as failed by hand
	ProblemUnreadable      = "urn:idem:problem:unreadable"        // 500, the record holds something else than a response
	ProblemUnavailable     = "urn:idem:problem:unavailable"       // 503, the store cannot be used now
	ProblemUnreachable     = "urn:idem:problem:unreachable"       // 502, NewProxy: the service could not be sent the request
	ProblemUpstreamBroken  = "urn:idem:problem:upstream-broken"   // 502, NewProxy: the service gave no complete response
	ProblemUpstreamTimeout = "urn:idem:problem:upstream-timeout"  // 504, NewProxy: the service gave no response in time
	ProblemInternal        = "urn:idem:problem:internal"          // 500, the service is set up wrongly
)

// Problem is the body of an answer this package gives in place of the handler's,
// as application/problem+json. Its text never quotes the request, a record or an
// error of the store.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Retryable says whether the same request with the same key may get another
	// answer later without somebody's help.
	Retryable bool `json:"retryable"`
	// Parts names what differs, for ProblemMismatch: "method", "route", "path",
	// "query", "media type", "body", or "/name" for a member of a JSON body.
	Parts []string `json:"parts,omitempty"`
	// Original describes the response for ProblemResponseNotKept.
	Original *Original `json:"original,omitempty"`

	// RetryAfter is sent as the Retry-After header, in whole seconds, if it is not 0.
	RetryAfter time.Duration `json:"-"`
}

// Original is what is known of a response that was not kept.
type Original struct {
	Status   int    `json:"status"`
	Location string `json:"location,omitempty"`
	Length   int64  `json:"length,omitempty"` // bytes of the body
	SHA256   string `json:"sha256,omitempty"` // of the body, in hexadecimal
}

// WriteTo answers with the problem. It is for what refuses requests by the same
// rules as this package.
func (p *Problem) WriteTo(w http.ResponseWriter) { p.writeTo(w, "") }

// writeTo answers with the problem.
func (p *Problem) writeTo(w http.ResponseWriter, s Status) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings, numbers and booleans always encode
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	if s != "" { // else who writes to the client knows it
		h.Set(HeaderStatus, string(s))
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // a client that is gone cannot be told
}
