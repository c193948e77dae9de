package idem

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// UntilDeadline makes WithWait wait as long as the caller's context allows.
const UntilDeadline = time.Duration(1<<63 - 1)

// Option configures a Guard. Every CallOption is also an Option: given to Open
// or New it becomes the default of all calls.
type Option interface{ applyGuard(*settings) }

// CallOption configures one call of Do. The last one wins.
type CallOption interface {
	Option
	applyCall(*callSettings)
}

// settings is all that Options can set.
type settings struct {
	call      callSettings
	observer  Observer
	logger    *slog.Logger
	secret    []byte
	traceFrom func(context.Context) string
	bolt      BoltConfig
	janitor   JanitorConfig
}

// callSettings is what one call works by.
type callSettings struct {
	policy   Policy
	kind     string
	traceID  string
	wait     time.Duration
	classify Classifier
	// ownClassifier: classify is not the default.
	ownClassifier bool
}

type guardOption func(*settings)

func (o guardOption) applyGuard(s *settings) { o(s) }

type callOption func(*callSettings)

func (o callOption) applyGuard(s *settings)    { o(&s.call) }
func (o callOption) applyCall(c *callSettings) { o(c) }

// WithPolicy sets the policy. The default is API.
func WithPolicy(p Policy) CallOption { return callOption(func(c *callSettings) { c.policy = p }) }

// WithRetention changes the retention of the policy.
func WithRetention(d time.Duration) CallOption {
	return callOption(func(c *callSettings) { c.policy.Retention = d })
}

// WithWait makes a call that finds an attempt in progress wait for it, at most
// for d and never beyond the deadline of its context, and then answer from its
// result. If that attempt fails, exactly one of the waiters takes over. The
// default, 0, does not wait.
func WithWait(d time.Duration) CallOption { return callOption(func(c *callSettings) { c.wait = d }) }

// WithTraceID records the caller's trace id. It is cut to 128 bytes.
func WithTraceID(id string) CallOption { return callOption(func(c *callSettings) { c.traceID = id }) }

// WithKind sets Record.Kind, for packages that build on Do. The default is
// "func".
func WithKind(kind string) CallOption { return callOption(func(c *callSettings) { c.kind = kind }) }

// WithClassifier replaces Classify.
func WithClassifier(f Classifier) CallOption {
	return callOption(func(c *callSettings) { c.classify, c.ownClassifier = f, true })
}

// WithTraceFrom takes the trace id of each call from its context, unless
// WithTraceID gives one.
func WithTraceFrom(f func(context.Context) string) Option {
	return guardOption(func(s *settings) { s.traceFrom = f })
}

// WithObserver calls f with every event of the guard and its janitor.
func WithObserver(f Observer) Option { return guardOption(func(s *settings) { s.observer = f }) }

// WithLogger logs events to h: what needs a person's eye as warnings, the rest
// at debug level. Keys are logged as scope and a hash of the id. The default
// logs nothing.
func WithLogger(h slog.Handler) Option {
	return guardOption(func(s *settings) { s.logger = slog.New(h) })
}

// WithSecret keys the fingerprints of a store that keeps no secret of its own;
// New refuses it for one that does. At least 16 random bytes, the same for every
// guard on the store.
func WithSecret(secret []byte) Option {
	return guardOption(func(s *settings) { s.secret = append([]byte(nil), secret...) })
}

// WithBolt configures the store that Open opens. New ignores it.
func WithBolt(c BoltConfig) Option { return guardOption(func(s *settings) { s.bolt = c }) }

// WithJanitor configures the janitor that Open starts. New ignores it.
func WithJanitor(c JanitorConfig) Option { return guardOption(func(s *settings) { s.janitor = c }) }

func newSettings(opts []Option) (settings, error) {
	s := settings{call: callSettings{policy: API, kind: "func", classify: Classify}}
	for _, o := range opts {
		o.applyGuard(&s)
	}
	return s, s.call.validate()
}

func (c *callSettings) validate() error {
	switch {
	case c.wait < 0:
		return fmt.Errorf("wait must not be negative, it is %s", c.wait)
	case c.kind == "" || len(c.kind) > maxKindBytes:
		return fmt.Errorf("kind %q must have 1 to %d bytes", c.kind, maxKindBytes)
	case c.classify == nil:
		return fmt.Errorf("the classifier is nil")
	}
	return c.policy.Validate()
}
