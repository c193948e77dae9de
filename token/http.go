package token

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// Where a request carries its token.
const (
	Header    = "X-Idempotent-Token"
	FormField = "idempotent_token"
)

// Field issues a token and returns the hidden input that carries it, for a form in
// an html/template. It should come first in a form that uploads files, see
// Protect. The page must not be cached for others: give it Cache-Control:
// no-store. Errors are those of Issue.
func (t *Tokens) Field(ctx context.Context, subject string) (template.HTML, error) {
	issued, err := t.Issue(ctx, subject)
	if err != nil {
		return "", err
	}
	return template.HTML(`<input type="hidden" name="` + FormField + `" value="` + issued.Value + `">`), nil
}

// Handler issues a token for every POST, and answers 200 with
// {"token": "…", "expires_at": "…"}, the time in RFC 3339. The subject function
// says whose it is, see Protect. It answers other methods with 405, a refused
// subject with 400, and 503 if the store cannot be used.
func (t *Tokens) Handler(subject func(*http.Request) (string, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			methodProblem().WriteTo(w)
			return
		}
		who, err := subjectOf(r, subject)
		if err != nil {
			subjectProblem().WriteTo(w)
			return
		}
		issued, err := t.Issue(r.Context(), who)
		if err != nil {
			problemOf(err).WriteTo(w)
			return
		}
		writeJSON(w, struct {
			Token     string    `json:"token"`
			ExpiresAt time.Time `json:"expires_at"`
		}{issued.Value, issued.ExpiresAt})
	})
}

// Protect returns a middleware that consumes the token of a request before the
// handler runs. GET, HEAD, OPTIONS and TRACE pass untouched.
//
// The token comes in the header X-Idempotent-Token or, where there is none, in the
// field idempotent_token of a body that is application/x-www-form-urlencoded or
// multipart/form-data; never in the address. The handler can read the form, or
// the whole body, as if nobody had. The field is looked for within the first MiB
// of the body: in a form that uploads files it should come first. Of a larger body
// the rest arrives after the token was consumed, and may break off.
//
// The subject function says on whose behalf the request is made, for instance the
// user of its session; nil stands for nobody, the subject "". It may be called
// concurrently and must not read the body. The text of its error stays in the
// service.
//
// What a client gets instead of the handler's answer is a problem detail (RFC 9457)
// with one of the types listed under ProblemUsed. The token of somebody else is
// answered like an unknown one.
func (t *Tokens) Protect(subject func(*http.Request) (string, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !isSafe(r.Method) {
				if p := t.admit(r, subject); p != nil {
					p.WriteTo(w)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// admit consumes the token of a request, or says why it must be refused.
func (t *Tokens) admit(r *http.Request, subject func(*http.Request) (string, error)) *idemhttp.Problem {
	who, err := subjectOf(r, subject)
	if err != nil {
		return subjectProblem()
	}
	value, err := tokenOf(r)
	if err != nil {
		return bodyProblem(err)
	}
	if value == "" {
		return missingProblem()
	}
	if err := t.Consume(r.Context(), value, who); err != nil {
		return problemOf(err)
	}
	return nil
}

func subjectOf(r *http.Request, subject func(*http.Request) (string, error)) (string, error) {
	if subject == nil {
		return "", nil
	}
	return subject(r)
}

// problemOf is what a client is told of an error of Issue or Consume.
func problemOf(err error) *idemhttp.Problem {
	switch {
	case errors.Is(err, ErrUsed):
		return usedProblem()
	case errors.Is(err, ErrExpired):
		return expiredProblem()
	case errors.Is(err, ErrUnknown), errors.Is(err, ErrSubject):
		return unknownProblem()
	case errors.Is(err, idem.ErrInvalidKey):
		return subjectProblem()
	}
	return unavailableProblem()
}

func isSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

func writeJSON(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers, booleans and times of this era always encode
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that is gone cannot be told
}
