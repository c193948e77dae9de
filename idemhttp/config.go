package idemhttp

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/idembolt/idem"
)

// config is all that Options can set.
type config struct {
	methods        []string
	keyHeader      string
	requireUUID    bool
	missing        Missing
	policy         *idem.Policy
	route          func(*http.Request) string
	traceID        func(*http.Request) string
	maxWait        time.Duration
	bodyMemory     int64
	maxBody        int64
	bodyTimeout    time.Duration
	spoolDir       string
	maxResponse    int
	maxStored      int64
	keep           Keep
	storeHeaders   []string
	handlerTimeout time.Duration
	failOpen       bool
	onAnswer       func(*http.Request, Status)
}

func newConfig(opts []Option) (config, error) {
	c := config{
		methods: []string{http.MethodPost, http.MethodPatch}, keyHeader: HeaderKey,
		route: func(r *http.Request) string { return r.Pattern }, traceID: traceParent,
		maxWait: 30 * time.Second, bodyMemory: 64 << 10, maxBody: 10 << 20, bodyTimeout: 2 * time.Minute,
		maxResponse: 1 << 20, maxStored: 16 << 20, handlerTimeout: 5 * time.Minute, onAnswer: func(*http.Request, Status) {},
	}
	for _, o := range opts {
		o(&c)
	}
	return c, c.validate()
}

const maxResponseLimit = idem.MaxValueBytes - 64<<10

func (c *config) validate() error {
	for _, m := range c.methods {
		if !isToken(m) || isSafe(m) {
			return fmt.Errorf("Methods: %q cannot be protected", m)
		}
	}
	switch {
	case len(c.methods) == 0:
		return errors.New("Methods: at least one is needed")
	case !isToken(c.keyHeader):
		return fmt.Errorf("KeyHeader: %q is not the name of a header", c.keyHeader)
	case c.missing != Require && c.missing != Allow:
		return fmt.Errorf("MissingKey: must be Require or Allow, it is %d", c.missing)
	case c.keep != Always && c.keep != Never:
		return fmt.Errorf("StoreBody: must be Always or Never, it is %d", c.keep)
	case c.route == nil || c.traceID == nil || c.onAnswer == nil:
		return errors.New("Route, TraceID and OnAnswer: the function must not be nil")
	case c.maxWait < 0 || c.bodyTimeout < 0:
		return fmt.Errorf("MaxWait and BodyTimeout: must not be negative, they are %s and %s", c.maxWait, c.bodyTimeout)
	case c.handlerTimeout <= 0:
		return fmt.Errorf("HandlerTimeout: must be positive, it is %s", c.handlerTimeout)
	case c.bodyMemory < 0 || c.maxBody < 0:
		return fmt.Errorf("BodyMemory and MaxBody: must not be negative, they are %d and %d", c.bodyMemory, c.maxBody)
	case c.maxResponse < 0 || c.maxResponse > maxResponseLimit:
		return fmt.Errorf("MaxResponse: must be 0 to %d bytes, it is %d", maxResponseLimit, c.maxResponse)
	case c.maxStored < 0:
		return fmt.Errorf("MaxStored: must not be negative, it is %d", c.maxStored)
	}
	if c.policy != nil {
		if err := c.policy.Validate(); err != nil {
			return err
		}
	}
	return c.checkSpoolDir()
}

func (c *config) checkSpoolDir() error {
	if c.spoolDir == "" {
		return nil
	}
	info, err := os.Stat(c.spoolDir)
	if err != nil {
		return fmt.Errorf("SpoolDir: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("SpoolDir: %s is not a directory", c.spoolDir)
	}
	return nil
}

func isSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// traceParent returns the trace id of a W3C traceparent header, or "".
func traceParent(r *http.Request) string {
	header := r.Header.Get("Traceparent")
	if len(header) < 55 || header[2] != '-' || header[35] != '-' {
		return ""
	}
	id := header[3:35]
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return id
}
