package token

import (
	"errors"
	"net/http"
	"strconv"
)

// Types of the problems (RFC 9457) that Protect and Handler answer with. They are
// names, not addresses, and do not change.
const (
	ProblemUsed           = "urn:idem:problem:token-used"      // 409, the token was consumed before
	ProblemUnknown        = "urn:idem:problem:token-unknown"   // 409, never issued, forgotten, or somebody else's
	ProblemExpired        = "urn:idem:problem:token-expired"   // 409, not consumed in time
	ProblemMissing        = "urn:idem:problem:token-missing"   // 400, the request carries no token, or several
	ProblemSubject        = "urn:idem:problem:token-subject"   // 400, the subject function refused the request
	ProblemBodyUnreadable = "urn:idem:problem:body-unreadable" // 400, the body broke off
	ProblemBodyTooLarge   = "urn:idem:problem:body-too-large"  // 413, over the limit of an http.MaxBytesReader
	ProblemMethod         = "urn:idem:problem:method"          // 405, Handler takes POST only
	ProblemUnavailable    = "urn:idem:problem:unavailable"     // 503, the store cannot be used now
)

// storeRetryAfter is when to try again while the store cannot be used, in seconds:
// nobody knows when it will be back.
const storeRetryAfter = 5

// problem is the body of an answer in place of the handler's. Its text never quotes
// the request, a record or an error of the store.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Retryable says whether the same request may get another answer later.
	Retryable bool `json:"retryable"`
}

func (p *problem) writeTo(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	if p.Retryable {
		w.Header().Set("Retry-After", strconv.Itoa(storeRetryAfter))
	}
	writeJSON(w, "application/problem+json", p.Status, p)
}

func usedProblem() *problem {
	return &problem{
		Type: ProblemUsed, Title: "Submitted before", Status: http.StatusConflict,
		Detail: "This form was submitted before. It is not submitted again.",
	}
}

func unknownProblem() *problem {
	return &problem{
		Type: ProblemUnknown, Title: "Token unknown", Status: http.StatusConflict,
		Detail: "The token is not known here. Nothing was done. Load the form again.",
	}
}

func expiredProblem() *problem {
	return &problem{
		Type: ProblemExpired, Title: "Token expired", Status: http.StatusConflict,
		Detail: "The form was open for too long. Nothing was done. Load it again.",
	}
}

func missingProblem() *problem {
	return &problem{
		Type: ProblemMissing, Title: "Token missing", Status: http.StatusBadRequest,
		Detail: "Send one token, in the header " + Header + " or in the form field " + FormField + ". Nothing was done.",
	}
}

func subjectProblem() *problem {
	return &problem{
		Type: ProblemSubject, Title: "Sender unknown", Status: http.StatusBadRequest,
		Detail: "The request does not say on whose behalf it is made. Nothing was done.",
	}
}

func bodyProblem(err error) *problem {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return &problem{
			Type: ProblemBodyTooLarge, Title: "Body too large", Status: http.StatusRequestEntityTooLarge,
			Detail: "The body of the request is too large. Nothing was done.",
		}
	}
	return &problem{
		Type: ProblemBodyUnreadable, Title: "Body unreadable", Status: http.StatusBadRequest,
		Detail: "The body of the request broke off. Nothing was done.",
	}
}

func methodProblem() *problem {
	return &problem{
		Type: ProblemMethod, Title: "Method not allowed", Status: http.StatusMethodNotAllowed,
		Detail: "A token is issued for a POST.",
	}
}

func unavailableProblem() *problem {
	return &problem{
		Type: ProblemUnavailable, Title: "Tokens unavailable", Status: http.StatusServiceUnavailable, Retryable: true,
		Detail: "It cannot be told now whether the token is good. Nothing was done.",
	}
}
