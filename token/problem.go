package token

import (
	"errors"
	"net/http"
	"time"

	"github.com/idembolt/idem/idemhttp"
)

// Types of the problems (RFC 9457) that Protect and Handler answer with. They are
// names, not addresses, and do not change.
const (
	ProblemUsed           = "urn:idem:problem:token-used"    // 409, the token was consumed before
	ProblemUnknown        = "urn:idem:problem:token-unknown" // 409, never issued, forgotten, or somebody else's
	ProblemExpired        = "urn:idem:problem:token-expired" // 409, not consumed in time
	ProblemMissing        = "urn:idem:problem:token-missing" // 400, the request carries no token, or several
	ProblemSubject        = "urn:idem:problem:token-subject" // 400, the subject function refused the request
	ProblemBodyUnreadable = idemhttp.ProblemBodyUnreadable   // 400, the body broke off
	ProblemBodyTooLarge   = idemhttp.ProblemBodyTooLarge     // 413, over the limit of an http.MaxBytesReader
	ProblemMethod         = "urn:idem:problem:method"        // 405, Handler takes POST only
	ProblemUnavailable    = idemhttp.ProblemUnavailable      // 503, the store cannot be used now
)

// storeRetryAfter is when to try again while the store cannot be used: nobody knows
// when it will be back.
const storeRetryAfter = 5 * time.Second

func usedProblem() *idemhttp.Problem {
	return &idemhttp.Problem{
		Type: ProblemUsed, Title: "Submitted before", Status: http.StatusConflict,
		Detail: "This form was submitted before. It is not submitted again.",
	}
}

func unknownProblem() *idemhttp.Problem {
	return &idemhttp.Problem{
		Type: ProblemUnknown, Title: "Token unknown", Status: http.StatusConflict,
		Detail: "The token is not known here. Nothing was done. Load the form again.",
	}
}

func expiredProblem() *idemhttp.Problem {
	return &idemhttp.Problem{
		Type: ProblemExpired, Title: "Token expired", Status: http.StatusConflict,
		Detail: "The form was open for too long. Nothing was done. Load it again.",
	}
}

func missingProblem() *idemhttp.Problem {
	return &idemhttp.Problem{
		Type: ProblemMissing, Title: "Token missing", Status: http.StatusBadRequest,
		Detail: "Send one token, in the header " + Header + " or in the form field " + FormField + ". Nothing was done.",
	}
}

func subjectProblem() *idemhttp.Problem {
	return &idemhttp.Problem{
		Type: ProblemSubject, Title: "Sender unknown", Status: http.StatusBadRequest,
		Detail: "The request does not say on whose behalf it is made. Nothing was done.",
	}
}

func bodyProblem(err error) *idemhttp.Problem {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return &idemhttp.Problem{
			Type: ProblemBodyTooLarge, Title: "Body too large", Status: http.StatusRequestEntityTooLarge,
			Detail: "The body of the request is too large. Nothing was done.",
		}
	}
	return &idemhttp.Problem{
		Type: ProblemBodyUnreadable, Title: "Body unreadable", Status: http.StatusBadRequest,
		Detail: "The body of the request broke off. Nothing was done.",
	}
}

func methodProblem() *idemhttp.Problem {
	return &idemhttp.Problem{
		Type: ProblemMethod, Title: "Method not allowed", Status: http.StatusMethodNotAllowed,
		Detail: "A token is issued for a POST.",
	}
}

func unavailableProblem() *idemhttp.Problem {
	return &idemhttp.Problem{
		Type: ProblemUnavailable, Title: "Tokens unavailable", Status: http.StatusServiceUnavailable, Retryable: true,
		Detail: "It cannot be told now whether the token is good. Nothing was done.", RetryAfter: storeRetryAfter,
	}
}
