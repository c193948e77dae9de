// Package idemhttp makes HTTP handlers idempotent: a request that is sent again
// with the same Idempotency-Key gets the response of the first one, and the
// handler does not run again.
//
//	protect, err := idemhttp.New(guard, func(r *http.Request) (string, error) {
//		return "charges:" + tenantOf(r), nil
//	})
//	if err != nil {
//		return err
//	}
//	mux.Handle("POST /charges", protect(http.HandlerFunc(charge)))
//
// It is a net/http middleware and works with every router that takes those.
// What a key means, how long it is kept and what follows a crash is decided by
// the guard and its policy: see package idem.
//
// # Scope
//
// The scope says who is asking and for which operation. It keeps one client
// from getting the response of another who happened to choose the same key, so
// it is required. Name the stable identity of the client, a tenant or an
// account, not the credentials of the day: a token that was renewed between two
// attempts would make a new key of the same one.
//
// # What repeats are compared by
//
// Method, route, path, query (in any order), media type and body. A JSON body is
// compared by its top-level members, so that their order, white space and the
// spelling of numbers do not matter and a mismatch names the member. All of the
// body is read before anything is claimed; the handler reads it again.
//
// # What a client gets
//
//	first request                executed      the handler's response
//	repeat, when it is done      replayed      the same response, and Idempotent-Replayed: true
//	repeat, while it runs        in-progress   409, or with "Prefer: wait=10" the response when it is done
//	other request, same key      mismatch      422 that names what differs
//	repeat after a crash         interrupted   409, until the policy or a person settles it
//	repeat, response not kept    replayed      409 with what is known of the response
//	no key, or a bad one         ignored       400
//	store cannot be used         ignored       503 with Retry-After
//
// The middle column is the Idempotency-Status header. Refusals are problem
// details (RFC 9457) with the types listed under ProblemKeyMissing. The header
// Idempotency-Expires says until when a record answers.
//
// # What is stored
//
// Responses with 2xx, 3xx and 4xx, with their status, body and the headers that
// describe the content. 401, 403, 407, 408, 425, 429 and 503 release the key: a
// request with a bad signature must not block the genuine one. Any other 5xx is
// stored by a policy that fails closed; under Rerun and Reconcile it is an
// unknown outcome, see Policy.
//
// A handler that knows better than its status calls Fail.
//
// The response is held back until its record is durable. One that is larger
// than MaxResponse is passed through as it is made, and stored beside the record
// up to MaxStored. One that is larger still, or that the handler flushes or
// hijacks, is passed through and not stored: the record then holds only that it
// was, and a repeat is told so and does not run.
//
// # Clients that hang up
//
// The handler's context does not end with the connection but after
// HandlerTimeout, or with cause idem.ErrLeaseLost. The record is finished
// whether or not somebody still listens. A handler that panics leaves an
// interrupted attempt, and the panic goes on. Handlers reach their attempt with
// idem.AttemptFrom.
package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/idembolt/idem"
)

// ScopeFunc names who is asking and for which operation: see idem.Key.Scope for
// what a scope may hold. A request it returns an error for is refused with 400;
// the error's text stays in the service. It may be called concurrently and must
// not read the body.
type ScopeFunc func(*http.Request) (string, error)

// kind is that of the records.
const kind = "http"

// New returns a middleware that works on g. The handlers it wraps share its
// options and what it learns of their speed, so that one per service or per
// policy is enough. It returns an error that names the option for a value that
// is not allowed.
func New(g *idem.Guard, scope ScopeFunc, opts ...Option) (func(http.Handler) http.Handler, error) {
	if g == nil || scope == nil {
		return nil, errors.New("idemhttp: New needs a guard and a scope")
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("idemhttp: %w", err)
	}
	m := &middleware{config: c, guard: g, scope: scope, pace: newPace()}
	if m.kept, err = headerSet(c.storeHeaders); err != nil {
		return nil, fmt.Errorf("idemhttp: %w", err)
	}
	policy := g.Policy()
	if c.policy != nil {
		policy = *c.policy
	}
	m.retention = policy.Retention
	m.failsClosed = policy.OnInterrupted.FailsClosed()
	m.call = []idem.CallOption{idem.WithKind(kind), idem.WithClassifier(idem.Classify), idem.WithPolicy(policy)}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}, nil
}

type middleware struct {
	config
	guard *idem.Guard
	scope ScopeFunc
	kept  map[string]bool
	call  []idem.CallOption
	pace  *pace
	// retention is that of the policy.
	retention time.Duration
	// failsClosed: a 5xx of the handler is stored like any other response.
	failsClosed bool
}

// serve lets through what is not protected and refuses what cannot be.
func (m *middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if isSafe(r.Method) || !slices.Contains(m.methods, r.Method) {
		if !isSafe(r.Method) && len(r.Header.Values(m.keyHeader)) > 0 {
			w.Header().Set(HeaderStatus, string(StatusIgnored)) // the client relies on what it does not get
		}
		next.ServeHTTP(w, r)
		return
	}
	id, err := readKey(r.Header, m.keyHeader, m.requireUUID)
	if err != nil && m.missing == Allow && len(r.Header.Values(m.keyHeader)) == 0 {
		m.unprotected(w, r, next, err)
		m.onAnswer(r, StatusIgnored)
		return
	}
	limited := limitBodyTime(w, r, m.bodyTimeout) // not for a refused one: the server reads on, to be polite
	if err != nil {
		m.refuseKey(w, r, err)
		return
	}
	scope, err := m.scope(r)
	if err != nil {
		m.guard.Reject(kind, &idem.KeyError{Reason: idem.RejectNoScope, Detail: err.Error()})
		m.refuse(w, r, scopeProblem())
		return
	}
	body, err := spool(r, m.bodyMemory, m.maxBody, m.spoolDir)
	if err != nil {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // the rest of the body is not worth waiting for
		}
		m.refuse(w, r, bodyProblem(err))
		return
	}
	defer body.close()
	if limited {
		unlimitBodyTime(w)
	}
	m.protect(w, r, next, idem.Key{Scope: scope, ID: id}, body)
}

// unprotected runs the handler as if there were no middleware.
func (m *middleware) unprotected(w http.ResponseWriter, r *http.Request, next http.Handler, reason error) {
	m.guard.Unprotected(kind, reason)
	w.Header().Set(HeaderStatus, string(StatusIgnored))
	next.ServeHTTP(w, r)
}

func (m *middleware) refuseKey(w http.ResponseWriter, r *http.Request, err error) {
	bad := &idem.KeyError{Reason: idem.RejectFormat, Detail: err.Error()}
	_ = errors.As(err, &bad)
	m.guard.Reject(kind, bad)
	m.refuse(w, r, keyProblem(m.keyHeader, bad))
}

func (m *middleware) refuse(w http.ResponseWriter, r *http.Request, p *Problem) {
	p.writeTo(w, StatusIgnored)
	m.onAnswer(r, StatusIgnored)
}

// protect runs the request under its key and answers it.
func (m *middleware) protect(w http.ResponseWriter, r *http.Request, next http.Handler, key idem.Key, body *spooled) {
	x := &exchange{m: m, w: w, r: r, next: next, body: body, route: m.route(r)}
	opts := m.call
	if wait := preferredWait(r.Header, m.maxWait); wait > 0 {
		opts = append(slices.Clip(opts), idem.WithWait(wait))
	}
	if id := m.traceID(r); id != "" {
		opts = append(slices.Clip(opts), idem.WithTraceID(id))
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	x.detach = context.AfterFunc(r.Context(), func() { cancel(context.Cause(r.Context())) })
	defer x.detach()

	res, err := idem.Do(ctx, m.guard, key, requestParts(r, x.route, body), x.run, opts...)
	m.onAnswer(r, x.answer(ctx, res, err))
}
