package idemhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// The key may come in another header, and other methods may need one.
func ExampleKeyHeader() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	scope := func(*http.Request) (string, error) { return "keyheader", nil }
	protect, err := idemhttp.New(guard, scope, idemhttp.KeyHeader("X-Idempotency-Key"), idemhttp.Methods(http.MethodPut))
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("writing")
	}))

	for range 2 {
		r := httptest.NewRequest(http.MethodPut, "/", nil)
		r.Header.Set("X-Idempotency-Key", "k-1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"))
	}

	// Output:
	// writing
	// 200 executed
	// 200 replayed
}
