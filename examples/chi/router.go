package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// newRouter puts the protection where chi has found the route: in r.With, or in
// Use inside r.Group. A middleware given to Use of a router runs before that
// router has looked. It would find a pattern of "" or "/v1/*", so that a mismatch
// could not name the route, and it would keep the 404 of a mistyped path under
// the client's key.
//
// newRouter asks chi for the pattern and does not rely on Request.Pattern, which
// is the default: before chi 5.3 that lacks the prefix of a mounted router. The
// name is compared on repeats, so an upgrade of chi must not change it.
func newRouter(guard *idem.Guard, tenants map[string]string) (http.Handler, error) {
	protect, err := idemhttp.New(guard, scope, idemhttp.Route(func(r *http.Request) string {
		return chi.RouteContext(r.Context()).RoutePattern()
	}))
	if err != nil {
		return nil, err
	}
	o := &orders{states: make(map[int]order)}
	r := chi.NewRouter()
	r.Use(authenticate(tenants))
	r.Route("/v1/orders", func(r chi.Router) {
		r.Get("/{id}", o.show)
		r.With(protect).Post("/", o.place)
		r.Group(func(r chi.Router) {
			r.Use(protect)
			r.Post("/{id}/cancel", o.cancel)
			r.Post("/{id}/ship", o.ship)
		})
	})
	return r, nil
}

type tenantKey struct{}

// authenticate puts the tenant into the context. A header would do too, but a
// route that forgets to authenticate would then believe what the client sent.
func authenticate(tenants map[string]string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			tenant, known := tenants[token]
			if !known {
				http.Error(w, "unknown token", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tenantKey{}, tenant)))
		})
	}
}

func tenantOf(r *http.Request) string {
	tenant, _ := r.Context().Value(tenantKey{}).(string)
	return tenant
}

// scope is the same on all routes, so that a key which is used on a second one is
// refused and not taken for a new one.
func scope(r *http.Request) (string, error) {
	tenant := tenantOf(r)
	if tenant == "" {
		return "", errors.New("the request was not authenticated")
	}
	return "orders:" + tenant, nil
}
