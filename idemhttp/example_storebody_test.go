package idemhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// A key that is shown once does not go into the store: a repeat makes no second
// one, and learns only that there is one.
func ExampleStoreBody() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	scope := func(*http.Request) (string, error) { return "storebody", nil }
	protect, err := idemhttp.New(guard, scope, idemhttp.StoreBody(idemhttp.Never))
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/tokens/7")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "secret token")
	}))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Idempotency-Key", "k-1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"), w.Body)
	}

	// Output:
	// 201 executed secret token
	// 409 replayed {"type":"urn:idem:problem:response-not-kept","title":"Done, response not kept","status":409,"detail":"The request was carried out before. Its response was not kept and cannot be sent again.","retryable":false,"original":{"status":201,"location":"/tokens/7","length":12}}
}
