package idemhttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// A handler that could not even begin frees the key, though its 502 alone would
// count as an outcome that nobody knows.
func ExampleFail() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	protect, err := idemhttp.New(guard, func(*http.Request) (string, error) { return "charges", nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	dial := func() error { return errors.New("connection refused") }
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := dial(); err != nil {
			idemhttp.Fail(r.Context(), fmt.Errorf("provider: %w", err))
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))

	for range 3 {
		r := httptest.NewRequest(http.MethodPost, "/charges", nil)
		r.Header.Set("Idempotency-Key", "k-1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"))
		dial = func() error { return nil } // the provider is back
	}

	// Output:
	// 502 executed
	// 201 executed
	// 201 replayed
}
