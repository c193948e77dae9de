package idemhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// A header that repeats need too is added to those that are stored.
func ExampleStoreHeaders() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	scope := func(*http.Request) (string, error) { return "storeheaders", nil }
	protect, err := idemhttp.New(guard, scope, idemhttp.StoreHeaders("X-Balance"))
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Balance", "12.50")
		w.Header().Set("Set-Cookie", "session=1")
	}))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Idempotency-Key", "k-1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"), w.Header().Get("X-Balance"), w.Header().Get("Set-Cookie"))
	}

	// Output:
	// 200 executed 12.50 session=1
	// 200 replayed 12.50
}
