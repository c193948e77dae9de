package idemhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// Every answer is counted, also those without a key.
func ExampleOnAnswer() {
	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	scope := func(*http.Request) (string, error) { return "onanswer", nil }
	counts := make(map[idemhttp.Status]int) // a service counts with something that is safe for concurrent use
	count := func(_ *http.Request, s idemhttp.Status) { counts[s]++ }
	protect, err := idemhttp.New(guard, scope, idemhttp.MissingKey(idemhttp.Allow), idemhttp.OnAnswer(count))
	defer func() { fmt.Println(counts) }()
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
	}))

	for _, key := range []string{"", "k-1", "k-1"} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"))
	}

	// Output:
	// 202 ignored
	// 202 executed
	// 202 replayed
	// map[executed:1 ignored:1 replayed:1]
}
