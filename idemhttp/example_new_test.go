package idemhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// A request that is sent again gets the response of the first one. A key that
// is used for another request is refused, and the answer names what differs.
func ExampleNew() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{})) // a service uses idem.Open
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	protect, err := idemhttp.New(guard, func(r *http.Request) (string, error) {
		return "charges:" + r.Header.Get("X-Tenant"), nil // a service takes it from what it has authenticated
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("POST /charges", protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("charging")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id":"ch_1"}`)
	})))

	for _, body := range []string{`{"amount":5}`, `{ "amount": 5.0 }`, `{"amount":6}`} {
		r := httptest.NewRequest(http.MethodPost, "/charges", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Tenant", "acme")
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"), w.Body)
	}

	// Output:
	// charging
	// 201 executed {"id":"ch_1"}
	// 201 replayed {"id":"ch_1"}
	// 422 mismatch {"type":"urn:idem:problem:mismatch","title":"Idempotency key reused","status":422,"detail":"This key was used before with another request. This one was not carried out.","retryable":false,"parts":["/amount"]}
}
