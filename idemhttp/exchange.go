package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/idembolt/idem"
)

// exchange is one protected request on its way to an answer.
type exchange struct {
	m     *middleware
	w     http.ResponseWriter
	r     *http.Request
	next  http.Handler
	body  *spooled
	route string
	// detach takes the attempt's context off the client's connection. It reports
	// false if that is gone already.
	detach func() bool
	rec    *recorder // nil until the handler runs
	failed failure
}

// errGone releases the key of a client that hung up before the handler began:
// nothing was done, and a retry may come.
var errGone = errors.New("the client hung up before the handler began")

// run is the guarded function: it calls the handler and returns the response in
// its stored form. The error says by its kind what becomes of the key.
func (x *exchange) run(ctx context.Context, a *idem.Attempt) (value []byte, err error) {
	if !x.detach() {
		return nil, errGone
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, exchangeKey{}, x), x.m.handlerTimeout)
	defer cancel()
	r := x.r.WithContext(ctx)
	r.Body = x.body.reader()
	r.GetBody = func() (io.ReadCloser, error) { return x.body.reader(), nil } // for who sends it on
	defer func() {
		if r.MultipartForm != nil { // the server removes only the files of its own request
			_ = r.MultipartForm.RemoveAll()
		}
		x.r.Pattern = r.Pattern // for whoever logs it around us
	}()
	x.rec = newRecorder(x.w, x.m.maxResponse, x.m.newChunks(a))
	refers := false
	defer func() {
		if !refers {
			x.rec.chunks.discard()
		}
	}()
	began := time.Now()
	x.next.ServeHTTP(x.rec, r)
	x.m.pace.add(x.route, time.Since(began))
	value, err = x.outcome()
	refers = err == nil || idem.Classify(err) == idem.OutcomePermanent
	return value, err
}

// outcome is the table of what is stored.
func (x *exchange) outcome() ([]byte, error) {
	response := x.rec.response(x.m.kept, x.m.keep)
	value, err := response.MarshalBinary()
	if err != nil {
		return nil, idem.Unknown(fmt.Errorf("encode the response: %w", err))
	}
	if err := x.failed.get(); err != nil {
		return value, err // which is stored only with a permanent failure
	}
	answered := fmt.Errorf("answered %d %s", response.Status, http.StatusText(response.Status))
	switch {
	case releases(response.Status):
		return nil, answered
	case response.Status >= 500 && !x.m.failsClosed:
		return nil, idem.Unknown(answered)
	case response.Status >= 500:
		return value, idem.Permanent(answered)
	}
	return value, nil
}

// releases reports whether a status says that the request was turned away
// before any work was done.
func releases(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusTooEarly, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// answer gives the client its response and returns what became of the key.
func (x *exchange) answer(ctx context.Context, res idem.Result[[]byte], err error) Status {
	var inProgress *idem.InProgressError
	var mismatch *idem.MismatchError
	switch {
	case x.rec != nil:
		return x.executed(res.Record, err)
	case err == nil, errors.Is(err, idem.ErrFailed), errors.Is(err, idem.ErrValueNotKept):
		return x.replay(ctx, res.Record)
	case errors.As(err, &inProgress):
		elapsed := time.Since(inProgress.Record.StartedAt)
		return x.problem(inProgressProblem(x.m.pace.remaining(x.route, elapsed, inProgress.RetryAfter)), StatusInProgress)
	case errors.As(err, &mismatch):
		return x.problem(mismatchProblem(mismatch.Parts), StatusMismatch)
	case errors.Is(err, idem.ErrInterrupted):
		return x.problem(interruptedProblem(!x.m.failsClosed), StatusInterrupted)
	case errors.Is(err, idem.ErrInvalidKey), errors.Is(err, idem.ErrInvalidInput), errors.Is(err, idem.ErrInvalidPolicy):
		return x.problem(internalProblem(), StatusIgnored) // the key's id was checked: the scope is at fault
	case x.m.failOpen && x.mayFailOpen(err):
		r := x.r.WithContext(x.r.Context())
		r.Body = x.body.reader()
		x.m.unprotected(x.w, r, x.next, err)
		return StatusIgnored
	}
	return x.problem(unavailable(), StatusIgnored)
}

// mayFailOpen tells a store that cannot be used from a record that cannot be
// read, which is there, and from a client that is gone.
func (x *exchange) mayFailOpen(err error) bool {
	return x.r.Context().Err() == nil && !errors.Is(err, errGone) &&
		!errors.Is(err, idem.ErrCorrupt) && !errors.Is(err, idem.ErrFormat)
}

// executed sends the handler's response, also where it could not be recorded:
// the work was done.
func (x *exchange) executed(rec idem.Record, err error) Status {
	status, expires := StatusExecuted, ""
	switch {
	case errors.Is(err, idem.ErrNotRecorded):
	case errors.Is(err, idem.ErrInterrupted):
		status = StatusInterrupted
	case rec.State == idem.Completed, rec.State == idem.Failed:
		expires = expiry(rec)
	}
	x.rec.send(status, expires)
	return status
}

func (x *exchange) problem(p *Problem, s Status) Status {
	p.writeTo(x.w, s)
	return s
}

func expiry(rec idem.Record) string { return rec.ExpiresAt.UTC().Format(http.TimeFormat) }
