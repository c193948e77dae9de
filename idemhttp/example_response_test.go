package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// The provider did not answer in time. Before it is asked to charge again, it is
// asked what became of the first attempt, and that becomes the response.
func ExampleResponse() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	policy := idem.Payments
	policy.OnInterrupted = idem.Reconcile(func(_ context.Context, rec idem.Record) (idem.Verdict, error) {
		fmt.Println("looking up", rec.Key)
		value, err := idemhttp.Response{Status: http.StatusCreated, Body: []byte("receipt")}.MarshalBinary()
		return idem.Done(value), err
	})
	scope := func(*http.Request) (string, error) { return "charges", nil }
	protect, err := idemhttp.New(guard, scope, idemhttp.Policy(policy))
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprint(w, "no answer")
	}))
	for range 3 {
		r := httptest.NewRequest(http.MethodPost, "/charges", nil)
		r.Header.Set("Idempotency-Key", "k-1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"), w.Body)
	}

	// Output:
	// 504 interrupted no answer
	// looking up charges/k-1
	// 201 replayed receipt
	// 201 replayed receipt
}
