package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/idembolt/idem/cmd/idemctl/internal/spell"
)

// maxRoutes bounds the work of comparing each with the others.
const maxRoutes = 1000

// protectable are the methods that a route may name. Others are refused: a slip
// of the pen would leave a route without protection.
func protectable() []string {
	return []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete}
}

// AddRoute adds a route that is written as in a file, after the word route. from
// is the flag that holds it, policy the name of its policy or "".
func (c *Config) AddRoute(from, text, policy string) error {
	words, err := split(text)
	if err != nil {
		return &Error{place{name: from}, err}
	}
	r, errs := parseRoute(place{name: from}, words)
	if policy != "" {
		if r.Policy != "" {
			errs = append(errs, fmt.Errorf("route %s has two policies, %s and %s", r.Pattern, r.Policy, policy))
		}
		r.Policy = policy
	}
	c.Routes = append(c.Routes, r)
	var all []error
	for _, err := range errs {
		all = append(all, &Error{place{name: from}, err})
	}
	return errors.Join(all...)
}

// parseRoute reads [METHOD] PATTERN [NAME=VALUE]…, where method and pattern may
// also be one word.
func parseRoute(at place, words []string) (Route, []error) {
	r := newRoute(at)
	switch {
	case len(words) == 0:
		return r, []error{errors.New("a route needs a pattern, such as POST /charges")}
	case strings.Contains(words[0], "/"):
		r.Pattern, words = words[0], words[1:]
	case len(words) == 1 || !strings.Contains(words[1], "/"):
		return r, []error{fmt.Errorf("%q is not a route: write a path after the method, such as POST /charges", words[0])}
	default:
		r.Pattern, words = words[0]+" "+words[1], words[2:]
	}
	errs := set(&r, words, routeSettings())
	if err := checkPattern(r.Pattern); err != nil {
		errs = append(errs, err)
	}
	return r, errs
}

// method is that of a pattern, "" if it names none.
func method(pattern string) string {
	before, _, _ := strings.Cut(pattern, "/")
	name, _, found := strings.Cut(before, " ")
	if !found {
		return ""
	}
	return name
}

func checkPattern(pattern string) error {
	if name := method(pattern); name != "" && !slices.Contains(protectable(), name) {
		switch upper := strings.ToUpper(name); {
		case slices.Contains(protectable(), upper):
			return fmt.Errorf("route %s: write the method in capitals, %s", pattern, upper)
		case slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, upper):
			return fmt.Errorf("route %s: %s changes nothing and always passes: leave the route out", pattern, upper)
		}
		return fmt.Errorf("route %s: %q cannot be protected, only %s", pattern, name, strings.Join(protectable(), ", "))
	}
	if err := register(http.NewServeMux(), pattern, http.NotFoundHandler()); err != nil {
		return fmt.Errorf("route %s is not a pattern: %s", pattern, strings.TrimPrefix(err.Error(), fmt.Sprintf("parsing %q: ", pattern)))
	}
	return nil
}

// register is mux.Handle, which panics for a pattern that is not one and for one
// that conflicts with another.
func register(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	mux.Handle(pattern, h)
	return nil
}

// checkRoutes compares the routes with each other and with the policies.
func (c *Config) checkRoutes() []*Error {
	var errs []*Error
	if len(c.Routes) > maxRoutes {
		return []*Error{{c.Routes[maxRoutes].at, fmt.Errorf("more than %d routes", maxRoutes)}}
	}
	mux := http.NewServeMux()
	for i, r := range c.Routes {
		if _, known := c.policy(r.Policy); r.Policy != "" && !known {
			errs = append(errs, &Error{r.at, fmt.Errorf("route %s: %w", r.Pattern, c.unknownPolicy(r.Policy))})
		}
		if checkPattern(r.Pattern) != nil { // it was said before
			continue
		}
		if register(mux, r.Pattern, http.NotFoundHandler()) != nil {
			errs = append(errs, &Error{r.at, conflict(r, c.Routes[:i])})
		}
	}
	return errs
}

// conflict says which of the earlier routes one cannot stand beside.
func conflict(r Route, earlier []Route) error {
	for _, other := range earlier {
		if other.Pattern == r.Pattern {
			return fmt.Errorf("route %s is already there: %s", r.Pattern, other.at)
		}
		mux := http.NewServeMux()
		if register(mux, other.Pattern, http.NotFoundHandler()) == nil && register(mux, r.Pattern, http.NotFoundHandler()) != nil {
			return fmt.Errorf("route %s conflicts with %s (%s): a request can match both, and neither is the more exact one", r.Pattern, other.Pattern, other.at)
		}
	}
	return fmt.Errorf("route %s conflicts with another", r.Pattern)
}

func (c *Config) unknownPolicy(name string) error {
	names := Preset()
	for own := range c.Policies {
		names = append(names, own)
	}
	slices.Sort(names)
	return fmt.Errorf("unknown policy %q%s", name, didYouMean(name, names))
}

// didYouMean is the end of an error about a word: the one that was meant, or else
// all there are.
func didYouMean(word string, words []string) string {
	if len(word) > maxName { // comparing takes time
		return ": there are " + strings.Join(words, ", ")
	}
	if near := spell.Nearest(word, words); near != "" {
		return ": did you mean " + near + "?"
	}
	return ": there are " + strings.Join(words, ", ")
}
