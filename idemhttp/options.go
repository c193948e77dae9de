package idemhttp

import (
	"net/http"
	"slices"
	"time"

	"github.com/idembolt/idem"
)

// Option configures the middleware that New returns. The last one wins.
type Option func(*config)

// Status is the value of the Idempotency-Status header.
type Status string

// What became of the key of a request.
const (
	// StatusExecuted: the handler ran for this request.
	StatusExecuted Status = "executed"
	// StatusReplayed: a finished record answered, with the response or, where
	// that was not kept, with a problem that says so.
	StatusReplayed Status = "replayed"
	// StatusInProgress: an earlier request with the key is still being worked on.
	StatusInProgress Status = "in-progress"
	// StatusMismatch: the key was used with another request.
	StatusMismatch Status = "mismatch"
	// StatusInterrupted: nobody knows whether the work was done.
	StatusInterrupted Status = "interrupted"
	// StatusIgnored: the key played no part. The handler ran without protection,
	// or a problem says why the request was refused.
	StatusIgnored Status = "ignored"
)

// Missing says what is done with a request of a protected method without a key.
type Missing int

const (
	// Require answers with 400. It is the default.
	Require Missing = iota
	// Allow runs the handler without protection.
	Allow
)

// Keep says whether response bodies are stored.
type Keep int

const (
	// Always stores bodies up to MaxResponse. It is the default.
	Always Keep = iota
	// Never stores no body.
	Never
)

// Methods replaces the methods that are protected. The default is POST and
// PATCH. Safe methods (GET, HEAD, OPTIONS, TRACE) always pass untouched and are
// refused here.
func Methods(names ...string) Option {
	return func(c *config) { c.methods = slices.Clone(names) }
}

// KeyHeader replaces the name of the header that carries the key, for instance
// by X-Idempotency-Key. The default is Idempotency-Key.
func KeyHeader(name string) Option { return func(c *config) { c.keyHeader = name } }

// RequireUUID refuses keys that are not UUIDs. The default is false.
func RequireUUID(on bool) Option { return func(c *config) { c.requireUUID = on } }

// MissingKey says what is done with requests without a key. The default is
// Require.
func MissingKey(m Missing) Option { return func(c *config) { c.missing = m } }

// Policy sets the policy of these routes. The default is that of the guard. Its
// OnInterrupted also decides what a 5xx status of the handler means.
func Policy(p idem.Policy) Option { return func(c *config) { c.policy = &p } }

// Route names the route of a request for routers other than net/http's. The
// default is Request.Pattern. The name is part of what repeats are compared by,
// so it must not change between them; "" means that it is not known.
func Route(name func(*http.Request) string) Option { return func(c *config) { c.route = name } }

// TraceID takes the trace id of a record from the request. The default is that
// of a W3C traceparent header, or else what the guard takes from the context.
func TraceID(of func(*http.Request) string) Option { return func(c *config) { c.traceID = of } }

// MaxWait bounds how long a request with "Prefer: wait" may wait for an earlier
// one. 0 makes nobody wait. The default is 30 seconds.
func MaxWait(d time.Duration) Option { return func(c *config) { c.maxWait = d } }

// BodyMemory is how many bytes of a request body are held in memory; what is
// larger goes to a temporary file. A JSON body that large is compared byte by
// byte. The default is 64 KiB.
func BodyMemory(bytes int64) Option { return func(c *config) { c.bodyMemory = bytes } }

// MaxBody is the largest request body in bytes; a larger one is answered with
// 413. The default is 10 MiB.
func MaxBody(bytes int64) Option { return func(c *config) { c.maxBody = bytes } }

// BodyTimeout is how long the body of a request may take to arrive, on servers
// without a ReadTimeout. 0 sets no limit. The default is 2 minutes.
func BodyTimeout(d time.Duration) Option { return func(c *config) { c.bodyTimeout = d } }

// SpoolDir is where large request bodies are kept while a request lasts. The
// default is os.TempDir.
func SpoolDir(dir string) Option { return func(c *config) { c.spoolDir = dir } }

// MaxResponse is the largest response body in bytes that is held back, in memory,
// until its record is durable. A larger one is passed through as it is made; see
// MaxStored. The default is 1 MiB, at most idem.MaxValueBytes less 64 KiB.
func MaxResponse(bytes int) Option { return func(c *config) { c.maxResponse = bytes } }

// MaxStored is the largest response body in bytes that is stored. What is larger
// than MaxResponse is stored in records of its own, of kind "http.chunk" and
// 256 KiB each, and repeated as a stream. Of a body that is larger than this, and
// of any larger than MaxResponse if this is not, a repeat is only told. The
// default is 16 MiB.
func MaxStored(bytes int64) Option { return func(c *config) { c.maxStored = bytes } }

// StoreBody(Never) keeps response bodies out of the store, for routes that hand
// out secrets. The first client gets the response; if it is lost on the way it
// is lost. Repeats are told that the work was done. The default is Always.
func StoreBody(k Keep) Option { return func(c *config) { c.keep = k } }

// StoreHeaders adds names to the response headers that are stored. Headers that
// hold secrets (Set-Cookie, Authorization, …) or belong to one connection are
// refused. The default list describes content and where to find it.
func StoreHeaders(names ...string) Option {
	return func(c *config) { c.storeHeaders = slices.Clone(names) }
}

// HandlerTimeout bounds the context of the handler, which does not end when the
// client hangs up. It must be positive. The default is 5 minutes.
func HandlerTimeout(d time.Duration) Option { return func(c *config) { c.handlerTimeout = d } }

// FailOpen runs the handler without protection while the store cannot be used,
// instead of answering 503. A repeat then does the work again, also that of a
// request that was protected. A record that is damaged never fails open. The
// default is false.
func FailOpen(on bool) Option { return func(c *config) { c.failOpen = on } }

// OnAnswer calls f for every request of a protected method when it has been
// answered, to count or log. It is called by the request's goroutine, so it must
// be quick and safe for concurrent use. It is not called when a handler panics.
func OnAnswer(f func(*http.Request, Status)) Option { return func(c *config) { c.onAnswer = f } }
