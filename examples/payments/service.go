package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// order is the body of POST /charges.
type order struct {
	Invoice  string `json:"invoice"`
	Amount   int64  `json:"amount"` // in the smallest unit of the currency
	Currency string `json:"currency"`
}

func (o order) validate() error {
	switch {
	case o.Invoice == "":
		return errors.New("the invoice is missing")
	case o.Amount <= 0:
		return errors.New("the amount must be positive")
	case len(o.Currency) != 3 || strings.Trim(o.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return errors.New("the currency must have three capital letters")
	}
	return nil
}

// receipt is what the client sees of a charge.
type receipt struct {
	ID string `json:"id"`
	order
}

type service struct {
	provider provider
	timeout  time.Duration     // of calls of the provider
	accounts map[string]string // by API key
}

// handler returns the routes. Only POST needs protection: GET is safe.
//
// idem.Payments fails closed: after a crash or a timeout a person would have to
// say what became of the charge. Here the provider can be asked, so the next
// request finds out.
func (s *service) handler(guard *idem.Guard) (http.Handler, error) {
	policy := idem.Payments
	policy.OnInterrupted = idem.Reconcile(s.reconcile)
	protect, err := idemhttp.New(guard, scope, idemhttp.Policy(policy))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /charges", protect(http.HandlerFunc(s.charge)))
	mux.HandleFunc("GET /charges/{id}", s.show)
	return s.authenticate(mux), nil
}

type accountKey struct{}

// authenticate is around the protection, not inside: strangers must not get as
// far as a key of somebody else.
func (s *service) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		account, known := s.accounts[key]
		if !known {
			http.Error(w, "unknown API key", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, account)))
	})
}

func accountOf(ctx context.Context) (string, bool) {
	account, ok := ctx.Value(accountKey{}).(string)
	return account, ok
}

// scope names the account, not its API key: that may be replaced between two
// tries.
func scope(r *http.Request) (string, error) {
	account, ok := accountOf(r.Context())
	if !ok {
		return "", errors.New("the request was not authenticated")
	}
	return "charges:" + account, nil
}

// charge may take all the time it needs: its context does not end when the
// client hangs up, and its answer is there for the retry.
func (s *service) charge(w http.ResponseWriter, r *http.Request) {
	account, _ := accountOf(r.Context())
	attempt, ok := idem.AttemptFrom(r.Context())
	if !ok {
		http.Error(w, "the route is not protected", http.StatusInternalServerError)
		return
	}
	o, err := readOrder(r.Body)
	if err != nil { // stored: the same body is as wrong the next time
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	// Every attempt sends the same child key, so that the provider too can tell
	// a second one. The reference is what reconcile finds the charge by.
	made, err := s.provider.Charge(ctx, attempt.ChildKey("provider"),
		charge{Account: account, Reference: attempt.Key().String(), order: o})
	switch {
	case err == nil:
		answer(w, created(made))
	case errors.Is(err, errDeclined): // stored: to try again is to send a new key
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	case errors.Is(err, errUnavailable): // nothing was done: 503 frees the key
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default: // a timeout does not mean "not charged"
		idemhttp.Fail(r.Context(), idem.Unknown(err))
		http.Error(w, "the provider did not answer, the outcome is unknown", http.StatusGatewayTimeout)
	}
}

func readOrder(body io.Reader) (order, error) {
	var o order
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return o, fmt.Errorf("the body is not an order: %w", err)
	}
	return o, o.validate()
}

// reconcile finds out what became of an attempt that a crash or a 504 has
// interrupted. After NotDone the order is sent to the provider again. Should the
// lost request reach it after all, both are under the same child key.
func (s *service) reconcile(ctx context.Context, rec idem.Record) (idem.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	made, err := s.provider.Find(ctx, rec.Key.String())
	switch {
	case errors.Is(err, errNoCharge):
		return idem.NotDone(), nil
	case err != nil:
		return idem.StillUnknown(), err
	}
	value, err := created(made).MarshalBinary()
	return idem.Done(value), err
}

// created is the answer to an order, also where reconcile gives it.
func created(c charge) idemhttp.Response {
	body, err := json.Marshal(receipt{ID: c.ID, order: c.order})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	header := http.Header{"Content-Type": {"application/json"}, "Location": {"/charges/" + c.ID}}
	return idemhttp.Response{Status: http.StatusCreated, Header: header, Body: append(body, '\n')}
}

func answer(w http.ResponseWriter, res idemhttp.Response) {
	maps.Copy(w.Header(), res.Header)
	w.WriteHeader(res.Status)
	_, _ = w.Write(res.Body) // a client that is gone cannot be told
}

// show answers with a charge of the account that asks.
func (s *service) show(w http.ResponseWriter, r *http.Request) {
	account, _ := accountOf(r.Context())
	found, err := s.provider.Get(r.Context(), r.PathValue("id"))
	switch {
	case errors.Is(err, errNoCharge), err == nil && found.Account != account:
		http.Error(w, "no such charge", http.StatusNotFound)
	case err != nil:
		http.Error(w, "the provider cannot be asked now", http.StatusServiceUnavailable)
	default:
		res := created(found)
		res.Status = http.StatusOK
		answer(w, res)
	}
}
