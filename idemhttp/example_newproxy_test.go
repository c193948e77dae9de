package idemhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// A service that knows nothing of keys is made idempotent by what stands in
// front of it.
func ExampleNewProxy() {
	charges := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		charges++
		fmt.Fprintf(w, "charge %d", charges)
	}))
	defer service.Close()

	guard, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close()
	protect, err := idemhttp.New(guard, func(r *http.Request) (string, error) { return "charges:" + r.Header.Get("X-Tenant"), nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	target, err := url.Parse(service.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	proxy := httptest.NewServer(protect(idemhttp.NewProxy(target)))
	defer proxy.Close()

	for _, tenant := range []string{"acme", "acme", "zeta"} {
		r, err := http.NewRequest(http.MethodPost, proxy.URL+"/charges", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Header.Set("Idempotency-Key", "k-1")
		r.Header.Set("X-Tenant", tenant)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Println(string(body), res.Header.Get("Idempotency-Status"), err)
	}

	// Output:
	// charge 1 executed <nil>
	// charge 1 replayed <nil>
	// charge 2 executed <nil>
}
