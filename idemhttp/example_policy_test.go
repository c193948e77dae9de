package idemhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// A handler that is safe to repeat runs again after a server error.
func ExamplePolicy() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	scope := func(*http.Request) (string, error) { return "policy", nil }
	policy := idem.API
	policy.OnInterrupted = idem.Rerun()
	protect, err := idemhttp.New(guard, scope, idemhttp.Policy(policy))
	failures := 1
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if failures > 0 {
			failures--
			w.WriteHeader(http.StatusBadGateway)
		}
	}))

	for range 3 {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Idempotency-Key", "k-1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"))
	}

	// Output:
	// 502 interrupted
	// 200 executed
	// 200 replayed
}
