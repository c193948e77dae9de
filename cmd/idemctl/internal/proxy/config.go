// Package proxy puts the middleware of idemhttp in front of a service that is
// reached over HTTP: its configuration and its server.
package proxy

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// DefaultListen is where a proxy listens unless it is told.
const DefaultListen = "127.0.0.1:8080"

// Config is what a proxy does. Make one with NewConfig or Parse, change it, and
// call Validate before it is used.
type Config struct {
	Listen string   // host:port
	To     *url.URL // of the service
	// Scope is the fixed part of the scope of keys, ScopeHeader the name of the
	// request header that holds the tenant. One of them is required.
	Scope       string
	ScopeHeader string
	// Policies are those of the file, by name, beside the presets.
	Policies map[string]idem.Policy
	// Routes are what is protected. Without any, every POST and PATCH is.
	Routes []Route

	// What holds for routes that do not say otherwise.
	Policy   string // a name
	Optional bool   // requests without a key pass
	Timeout  time.Duration

	FailOpen bool // requests pass while the store cannot be used
}

// Route is a set of requests that are protected.
type Route struct {
	// Pattern is one of http.ServeMux. Without a method it protects POST and PATCH.
	Pattern string
	Policy  string // a name; "" means Config.Policy
	Key     KeyRule
	// The others are as the options of idemhttp with these names; a Timeout of 0
	// means Config.Timeout.
	Timeout     time.Duration
	Wait        time.Duration
	MaxBody     int64
	MaxResponse int64 // idemhttp.MaxStored
	StoreBody   idemhttp.Keep

	at place
}

// KeyRule says what a route does with requests that have no key.
type KeyRule int

const (
	// KeyDefault is what Config.Optional says.
	KeyDefault KeyRule = iota
	// KeyRequired refuses them with 400.
	KeyRequired
	// KeyOptional lets them pass without protection.
	KeyOptional
)

const defaultTimeout = 5 * time.Minute

// NewConfig returns a configuration with the defaults, which lacks the service
// and the scope.
func NewConfig() *Config {
	return &Config{Listen: DefaultListen, Policies: make(map[string]idem.Policy), Policy: "api", Timeout: defaultTimeout}
}

func newRoute(at place) Route {
	return Route{at: at, Wait: 30 * time.Second, MaxBody: 10 << 20, MaxResponse: 16 << 20}
}

// presets are the policies that need no definition.
func presets() map[string]idem.Policy {
	return map[string]idem.Policy{"payments": idem.Payments, "orders": idem.Orders, "api": idem.API}
}

// Preset names the policies that need no definition.
func Preset() []string { return []string{"payments", "orders", "api"} }

func (c *Config) policy(name string) (idem.Policy, bool) {
	if p, ok := presets()[name]; ok {
		return p, true
	}
	p, ok := c.Policies[name]
	return p, ok
}

// place is where something was written: in a line of a file, or in a flag.
type place struct {
	name string // of the file, or the flag
	line int    // 0 for a flag
}

func (p place) String() string {
	if p.line == 0 {
		return p.name
	}
	return fmt.Sprintf("%s:%d", p.name, p.line)
}

// Error is one thing that is wrong with a configuration. Its text begins with the
// file and the line, or with the flag.
type Error struct {
	at  place
	err error
}

func (e *Error) Error() string { return e.at.String() + ": " + e.err.Error() }

// Unwrap returns what is wrong, without the place.
func (e *Error) Unwrap() error { return e.err }

// Errors takes apart what Parse and Validate return, so that each error can be
// printed on a line.
func Errors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// Validate returns all that is wrong with the configuration as a whole, or nil.
func (c *Config) Validate() error {
	var errs []error
	if c.To == nil {
		errs = append(errs, errors.New("it is not said which service to forward to: give --to http://127.0.0.1:3000, or a line \"to URL\""))
	} else if loops(c.Listen, c.To) {
		errs = append(errs, fmt.Errorf("it would forward to itself: %s is where it listens", c.To))
	}
	if c.Timeout <= 0 {
		errs = append(errs, errors.New("--timeout must be longer than 0"))
	}
	if _, known := c.policy(c.Policy); !known {
		errs = append(errs, &Error{place{name: "--policy"}, c.unknownPolicy(c.Policy)})
	}
	if err := c.checkScope(); err != nil {
		errs = append(errs, err)
	}
	for _, err := range c.checkRoutes() {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
