package idemhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// Clients that know nothing of keys are served as before, and told so.
func ExampleMissingKey() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	scope := func(*http.Request) (string, error) { return "missingkey", nil }
	protect, err := idemhttp.New(guard, scope, idemhttp.MissingKey(idemhttp.Allow))
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("sending")
	}))

	for _, key := range []string{"", "", "k-1", "k-1"} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"))
	}

	// Output:
	// sending
	// 200 ignored
	// sending
	// 200 ignored
	// sending
	// 200 executed
	// 200 replayed
}
