package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/idembolt/idem/idemhttp"
)

// reply is an answer of the service.
type reply struct {
	code       int
	status     idemhttp.Status // "" if something else than the service answered
	retryAfter time.Duration
	problem    *idemhttp.Problem // nil if the handler answered
	body       []byte
}

func readReply(resp *http.Response) (reply, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return reply{}, err
	}
	r := reply{code: resp.StatusCode, status: idemhttp.Status(resp.Header.Get(idemhttp.HeaderStatus)), body: body}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		r.retryAfter = time.Duration(seconds) * time.Second
	}
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		r.problem = new(idemhttp.Problem)
		if err := json.Unmarshal(body, r.problem); err != nil {
			return reply{}, fmt.Errorf("answered %s with a problem that cannot be read: %w", resp.Status, err)
		}
	}
	return r, nil
}

// verdict is what an answer means for the invoice.
type verdict int

const (
	paid      verdict = iota + 1
	refused           // for good: to try again is another intent
	unsettled         // the same request may get another answer
	stuck             // it may not, and the invoice may be paid
)

// verdict takes for final only what the protected handler has answered, now or
// before: a 404 or a 200 without the status header is that of a proxy or of a
// wrong address and says nothing about an earlier try.
func (r reply) verdict() verdict {
	switch {
	case r.problem != nil && r.problem.Retryable:
		return unsettled
	case r.problem != nil && r.problem.Type == idemhttp.ProblemFailed: // settled by a person
		return refused
	case r.problem != nil:
		return stuck
	case r.code >= 500, r.code == http.StatusRequestTimeout, r.code == http.StatusTooEarly, r.code == http.StatusTooManyRequests:
		return unsettled
	case r.status != idemhttp.StatusExecuted && r.status != idemhttp.StatusReplayed:
		return stuck
	case r.code == http.StatusUnauthorized, r.code == http.StatusForbidden: // before any work, so not about the key
		return stuck
	case r.code >= 400:
		return refused
	}
	return paid
}

func (r reply) error() error {
	text := string(bytes.TrimSpace(r.body))
	if r.problem != nil {
		text = r.problem.Detail
		if len(r.problem.Parts) > 0 {
			text += " It differs in " + strings.Join(r.problem.Parts, ", ") + "."
		}
	}
	return fmt.Errorf("the service answered %d: %s", r.code, text)
}

// origin says whether the answer was made for this request.
func (r reply) origin() string {
	if r.status == idemhttp.StatusReplayed {
		return " by an earlier request"
	}
	return ""
}
