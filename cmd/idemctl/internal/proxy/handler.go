package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// heldBytes is how much of a response is held back in memory.
const heldBytes = 1 << 20

// NewHandler forwards requests to the service, those of the routes under the
// protection of g. The configuration must be valid.
func NewHandler(g *idem.Guard, c *Config) (http.Handler, error) {
	f := &forwarder{mux: http.NewServeMux(), upstream: idemhttp.NewProxy(c.To)}
	routes := c.Routes
	if len(routes) == 0 {
		every := newRoute(place{})
		every.Pattern = "/"
		routes = []Route{every}
	}
	scope := scopeFunc(c.Scope, c.ScopeHeader)
	for _, r := range routes {
		protect, err := idemhttp.New(g, scope, c.options(r)...)
		if err != nil {
			return nil, fmt.Errorf("route %s: %w", r.Pattern, err)
		}
		if err := register(f.mux, r.Pattern, protected{protect(f.upstream)}); err != nil {
			return nil, fmt.Errorf("route %s: %w", r.Pattern, err)
		}
	}
	return f, nil
}

// options are those of the middleware of a route.
func (c *Config) options(r Route) []idemhttp.Option {
	name, timeout, missing := r.Policy, r.Timeout, idemhttp.Require
	if name == "" {
		name = c.Policy
	}
	if timeout == 0 {
		timeout = c.Timeout
	}
	if r.Key == KeyOptional || r.Key == KeyDefault && c.Optional {
		missing = idemhttp.Allow
	}
	policy, _ := c.policy(name) // Validate has seen to it that there is one
	opts := []idemhttp.Option{
		idemhttp.Policy(policy), idemhttp.HandlerTimeout(timeout), idemhttp.MissingKey(missing), idemhttp.MaxWait(r.Wait),
		idemhttp.MaxBody(r.MaxBody), idemhttp.MaxResponse(int(min(r.MaxResponse, heldBytes))), idemhttp.MaxStored(r.MaxResponse),
		idemhttp.StoreBody(r.StoreBody), idemhttp.FailOpen(c.FailOpen),
		// A pattern that is edited must not make other requests of repeats: the
		// path says where they go.
		idemhttp.Route(func(*http.Request) string { return "" }),
	}
	if m := method(r.Pattern); m != "" {
		opts = append(opts, idemhttp.Methods(m))
	}
	return opts
}

// protected marks the handlers of routes, so that those that a ServeMux makes by
// itself, to redirect or refuse, are told from them.
type protected struct{ http.Handler }

// forwarder sends each request to the middleware of its route, or past all of
// them. It uses its mux only to find the route: what is forwarded is the request
// as it came.
type forwarder struct {
	mux      *http.ServeMux
	upstream http.Handler
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h, ok := f.match(r); ok {
		h.ServeHTTP(w, r)
		return
	}
	f.upstream.ServeHTTP(w, r)
}

// match finds the route of a request. Services differ in what they make of dots,
// doubled slashes and one at the end, so none of these leads past a route.
func (f *forwarder) match(r *http.Request) (protected, bool) {
	clean := cleanPath(r.URL.EscapedPath())
	for _, p := range []string{clean, toggleSlash(clean)} {
		decoded, err := url.PathUnescape(p)
		if err != nil {
			return protected{}, false
		}
		probe := &http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: decoded, RawPath: p}}
		h, _ := f.mux.Handler(probe)
		if route, ok := h.(protected); ok {
			return route, true
		}
	}
	return protected{}, false
}

// cleanPath resolves dots and doubled slashes in an escaped path, and keeps a
// slash at its end.
func cleanPath(p string) string {
	p = strings.NewReplacer("%2e", ".", "%2E", ".").Replace(p)
	clean := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

func toggleSlash(p string) string {
	if rest, found := strings.CutSuffix(p, "/"); found && rest != "" {
		return rest
	}
	return strings.TrimSuffix(p, "/") + "/"
}
