package idemhttp

import (
	"encoding/hex"
	"net/http"
	"time"

	"github.com/idembolt/idem"
)

// storeRetryAfter is when to try again while the store cannot be used: nobody
// knows when it will be back.
const storeRetryAfter = 5 * time.Second

func keyProblem(header string, err *idem.KeyError) *Problem {
	p := &Problem{
		Type: ProblemKeyInvalid, Title: "Idempotency key invalid", Status: http.StatusBadRequest,
		Detail: header + ": " + err.Detail + ". Nothing was done.",
	}
	if err.Reason == idem.RejectMissing {
		p.Type, p.Title = ProblemKeyMissing, "Idempotency key missing"
	}
	return p
}

func scopeProblem() *Problem {
	return &Problem{
		Type: ProblemScope, Title: "Sender unknown", Status: http.StatusBadRequest,
		Detail: "The request does not say on whose behalf it is made. Nothing was done.",
	}
}

func inProgressProblem(retryAfter time.Duration) *Problem {
	return &Problem{
		Type: ProblemInProgress, Title: "Request in progress", Status: http.StatusConflict, Retryable: true,
		Detail:     "An earlier request with this key is still being worked on. Send the same request again later.",
		RetryAfter: retryAfter,
	}
}

func mismatchProblem(parts []string) *Problem {
	return &Problem{
		Type: ProblemMismatch, Title: "Idempotency key reused", Status: http.StatusUnprocessableEntity, Parts: parts,
		Detail: "This key was used before with another request. This one was not carried out.",
	}
}

func interruptedProblem(retryable bool) *Problem {
	return &Problem{
		Type: ProblemInterrupted, Title: "Outcome unknown", Status: http.StatusConflict, Retryable: retryable,
		Detail: "An earlier request with this key was interrupted and it is not known whether its work was done. It is not done again.",
	}
}

func notKeptProblem(r *Response) *Problem {
	p := &Problem{
		Type: ProblemResponseNotKept, Title: "Done, response not kept", Status: http.StatusConflict,
		Detail: "The request was carried out before. Its response was not kept and cannot be sent again.",
	}
	if r == nil {
		return p
	}
	p.Original = &Original{Status: r.Status, Location: r.Header.Get("Location"), Length: r.Length}
	if r.SHA256 != [32]byte{} {
		p.Original.SHA256 = hex.EncodeToString(r.SHA256[:])
	}
	return p
}

func failedProblem() *Problem {
	return &Problem{
		Type: ProblemFailed, Title: "Settled as failed", Status: http.StatusConflict,
		Detail: "An earlier request with this key was interrupted and was settled as failed. Use a new key to try again.",
	}
}

func unreadableProblem() *Problem {
	return &Problem{
		Type: ProblemUnreadable, Title: "Stored response unreadable", Status: http.StatusInternalServerError,
		Detail: "The key was used before, but not for a response that can be sent again. It is not done again.",
	}
}

func internalProblem() *Problem {
	return &Problem{
		Type: ProblemInternal, Title: "Service set up wrongly", Status: http.StatusInternalServerError,
		Detail: "The request could not be given a key. Nothing was done.",
	}
}

func unavailable() *Problem {
	return &Problem{
		Type: ProblemUnavailable, Title: "Idempotency unavailable", Status: http.StatusServiceUnavailable, Retryable: true,
		Detail: "It cannot be told now whether the request was carried out before. Nothing was done.", RetryAfter: storeRetryAfter,
	}
}

func unreachableProblem() *Problem {
	return &Problem{
		Type: ProblemUnreachable, Title: "Service not reached", Status: http.StatusBadGateway, Retryable: true,
		Detail: "The service behind this address could not be reached. Nothing was done.",
	}
}

func brokenProblem(timeout, retryable bool) *Problem {
	if timeout {
		return &Problem{
			Type: ProblemUpstreamTimeout, Title: "Service too slow", Status: http.StatusGatewayTimeout, Retryable: retryable,
			Detail: "The service did not answer in time. It is not known whether the request was carried out.",
		}
	}
	return &Problem{
		Type: ProblemUpstreamBroken, Title: "Connection to the service broke", Status: http.StatusBadGateway, Retryable: retryable,
		Detail: "The service was sent the request and gave no complete response. It is not known whether the request was carried out.",
	}
}
