package outbox

import (
	"context"
	"fmt"
	"time"
)

// Defaults of a Relay.
const (
	DefaultWorkers     = 8
	DefaultMinBackoff  = time.Second
	DefaultMaxBackoff  = 2 * time.Minute
	DefaultMaxAttempts = 10
	DefaultGrace       = 10 * time.Second
)

const (
	maxWorkers = 512
	// abandonAfter is how long a publisher may take to obey its ended context.
	abandonAfter = time.Second
)

// limits bound the memory of a relay. Bytes are those in the file.
type limits struct {
	windowEvents, windowBytes int // that were read ahead
	waiting                   int // aggregates in back-off, of which little is kept
	readEvents, readBytes     int // at a time
	commitBytes               int // of the parked events of one commit
}

var defaultLimits = limits{
	windowEvents: 4096, windowBytes: 32 << 20, waiting: 1 << 16, readEvents: 512, readBytes: 4 << 20, commitBytes: 8 << 20,
}

// RelayOption configures a Relay.
type RelayOption func(*Relay)

// WithWorkers sets how many events are published at a time: 1 to 512. The default
// is DefaultWorkers.
func WithWorkers(n int) RelayOption { return func(r *Relay) { r.workers = n } }

// WithBackoff sets how long an aggregate waits after its event has failed: about
// shortest after the first failure, twice as long after each further one, at most
// longest, and each time a random part of up to half of it less. At least a
// millisecond. The defaults are DefaultMinBackoff and DefaultMaxBackoff, with which
// an event is parked after some five minutes.
func WithBackoff(shortest, longest time.Duration) RelayOption {
	return func(r *Relay) { r.minBackoff, r.maxBackoff = shortest, longest }
}

// WithMaxAttempts sets after how many failed attempts an event is parked. 0 parks
// none: the aggregate of a failing event waits until it succeeds. The default is
// DefaultMaxAttempts.
func WithMaxAttempts(n int) RelayOption { return func(r *Relay) { r.maxAttempts = n } }

// WithGrace sets how long publishes that run may go on when Run is to stop. After
// that their contexts end. The default is DefaultGrace; 0 ends them at once.
func WithGrace(d time.Duration) RelayOption { return func(r *Relay) { r.grace = d } }

// Relay publishes the events of an Outbox. Make one with NewRelay.
type Relay struct {
	outbox      *Outbox
	publish     func(context.Context, Event) error
	workers     int
	minBackoff  time.Duration
	maxBackoff  time.Duration
	maxAttempts int
	grace       time.Duration
	limits      limits
}

// NewRelay returns a relay that hands events to publish. For publish, nil means
// that the event has reached the broker for good; an error, a panic or
// runtime.Goexit that it is to be tried again. It is called for up to WithWorkers
// events at a time, never for two of one aggregate, and must not change the event's
// payload or headers. Its context has the values of Run's and ends when Run has to
// stop and the grace period is over. Errors match ErrInvalidConfig.
func NewRelay(o *Outbox, publish func(context.Context, Event) error, opts ...RelayOption) (*Relay, error) {
	r := &Relay{
		outbox: o, publish: publish, workers: DefaultWorkers, minBackoff: DefaultMinBackoff,
		maxBackoff: DefaultMaxBackoff, maxAttempts: DefaultMaxAttempts, grace: DefaultGrace,
		limits: defaultLimits,
	}
	for _, opt := range opts {
		opt(r)
	}
	fault := ""
	switch {
	case o == nil || publish == nil:
		fault = "the outbox or the publish function is nil"
	case r.workers < 1 || r.workers > maxWorkers:
		fault = fmt.Sprintf("workers must be 1 to %d, not %d", maxWorkers, r.workers)
	case r.minBackoff < time.Millisecond || r.maxBackoff < r.minBackoff:
		fault = fmt.Sprintf("back-off must be from at least 1ms to no less, not from %s to %s", r.minBackoff, r.maxBackoff)
	case r.maxAttempts < 0:
		fault = fmt.Sprintf("attempts must not be negative, but 0 for no limit: %d", r.maxAttempts)
	case r.grace < 0:
		fault = fmt.Sprintf("the grace period must not be negative: %s", r.grace)
	}
	if fault != "" {
		return nil, fmt.Errorf("%w: %s", ErrInvalidConfig, fault)
	}
	return r, nil
}
