package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
	"github.com/idembolt/idem/idemhttp"
	"github.com/idembolt/idem/token"
)

const formPage = `<!DOCTYPE html>
<title>Order</title>
<form method="post" action="/order">
  {{.Token}}
  <input type="hidden" name="number" value="{{.Number}}">
  <select name="item">{{range $item, $price := .Prices}}<option>{{$item}}</option>{{end}}</select>
  <input name="quantity" value="1">
  <button>Order {{.Number}}</button>
</form>
`

// handler returns the routes. Programs post to /orders with a key of their own;
// people post the form, whose token the shop made. The rest is safe to repeat by
// what it does.
func (s *shop) handler() (http.Handler, error) {
	policy := idem.Orders
	policy.OnInterrupted = idem.Rerun() // place is all or nothing, and knows the number
	// There is no log-in here. Where there is one the scope names who asks.
	protect, err := idemhttp.New(s.guard, func(*http.Request) (string, error) { return "http.orders", nil }, idemhttp.Policy(policy))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /order", s.form())
	mux.HandleFunc("POST /order", s.submit)
	mux.Handle("POST /orders", protect(http.HandlerFunc(s.order)))
	mux.HandleFunc("POST /orders/{number}/pay", func(w http.ResponseWriter, r *http.Request) {
		paid, err := s.pay(r.Context(), r.PathValue("number"))
		answer(w, http.StatusOK, paid, err)
	})
	mux.HandleFunc("POST /orders/{number}/ship", s.change(s.ship))
	mux.HandleFunc("POST /orders/{number}/cancel", s.change(s.cancel))
	mux.HandleFunc("GET /orders/{number}", s.change(func(context.Context, string) error { return nil }))
	mux.HandleFunc("GET /outbox", func(w http.ResponseWriter, r *http.Request) {
		stats, err := s.events.Stats(r.Context())
		answer(w, http.StatusOK, stats, err)
	})
	return mux, nil
}

// form shows a form with a new number and a token that is good for that number.
func (s *shop) form() http.HandlerFunc {
	page := template.Must(template.New("form").Parse(formPage))
	return func(w http.ResponseWriter, r *http.Request) {
		number := "f-" + rand.Text()
		field, err := s.forms.Field(r.Context(), number)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		_ = page.Execute(w, map[string]any{"Token": field, "Number": number, "Prices": prices()}) // a client that is gone cannot be told
	}
}

// submit places the order of a form and uses up its token, both or neither. The
// second submit of a form is led to the order, as the first was.
func (s *shop) submit(w http.ResponseWriter, r *http.Request) {
	number, value := r.PostFormValue("number"), r.PostFormValue(token.FormField)
	quantity, err := strconv.ParseInt(r.PostFormValue("quantity"), 10, 64)
	o := order{Item: r.PostFormValue("item"), Quantity: quantity}
	if err := cmp.Or(err, o.validate(number)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err = s.place(r.Context(), number, o, func(ctx context.Context, tx *idem.Tx) error {
		return s.forms.On(tx.Records()).Consume(ctx, value, number)
	})
	if err != nil {
		refuse(w, err)
		return
	}
	http.Redirect(w, r, "/orders/"+url.PathEscape(number), http.StatusSeeOther)
}

// order places the order of a program, under a number that the program chose.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Number string `json:"number"`
		order
	}
	err := json.NewDecoder(r.Body).Decode(&asked)
	if err := cmp.Or(err, asked.validate(asked.Number)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err = s.place(r.Context(), asked.Number, asked.order, nil)
	answer(w, http.StatusCreated, asked, err)
}

// change makes a handler that does something to an order and shows it.
func (s *shop) change(do func(ctx context.Context, number string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		number := r.PathValue("number")
		if err := do(r.Context(), number); err != nil {
			refuse(w, err)
			return
		}
		row, err1 := s.orders.Get(r.Context(), number)
		state, err2 := s.states.Get(r.Context(), number)
		answer(w, http.StatusOK, map[string]any{
			"number": number, "item": row.Value.Item, "quantity": row.Value.Quantity, "state": state.State,
		}, cmp.Or(err1, err2))
	}
}

func answer(w http.ResponseWriter, status int, v any, err error) {
	if err != nil {
		refuse(w, err)
		return
	}
	body, err := json.Marshal(v)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s\n", body)
}

// refuse tells what is final from what is worth another try. On 503 the middleware
// frees the key; what is final it keeps and repeats.
func refuse(w http.ResponseWriter, err error) {
	status, text := http.StatusServiceUnavailable, "try again in a moment"
	var failed *idem.FailedError
	var illegal *fsm.IllegalError
	switch {
	case errors.As(err, &failed): // the same text as the first time
		status, text = http.StatusConflict, failed.Record.Error
	case idem.Classify(err) == idem.OutcomePermanent:
		status, text = http.StatusConflict, err.Error()
	case errors.As(err, &illegal):
		status, text = http.StatusConflict, "the order is "+illegal.From
	case errors.Is(err, token.ErrUsed), errors.Is(err, token.ErrExpired), errors.Is(err, token.ErrUnknown), errors.Is(err, token.ErrSubject):
		status, text = http.StatusConflict, "load the form again"
	case errors.Is(err, idem.ErrMismatch), errors.Is(err, errTaken):
		status, text = http.StatusUnprocessableEntity, errTaken.Error()
	case errors.Is(err, idem.ErrNotFound):
		status, text = http.StatusNotFound, "no such order"
	case errors.Is(err, idem.ErrInvalidKey):
		status, text = http.StatusBadRequest, "not a number of an order"
	default:
		slog.Warn("not done", "error", err)
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, text, status)
}
