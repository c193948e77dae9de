package idem

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Guard makes functions run once per key on a Store. Make one with Open or New
// and use it with Do or Func. It is safe for concurrent use.
type Guard struct {
	store    Store
	settings settings
	secret   []byte
	counters *counters
	recorder EventRecorder // nil if the store keeps no counts
	waiter   Waiter        // nil if the store cannot signal
	clock    Clock
	owner    func() string
	alive    func(owner string) bool
	closers  []io.Closer // what Close stops, in order

	mu       sync.Mutex
	closed   bool
	running  sync.WaitGroup        // attempts between claim and finish
	attempts map[*Attempt]struct{} // those whose function runs; nil when they were cut off
}

// New returns a guard on a store that the caller owns: Close does not close it
// and nothing expires records unless the caller runs a Janitor. It returns a
// *PolicyError for a bad policy, and an error if the store keeps no secret and
// WithSecret is not given.
func New(store Store, opts ...Option) (*Guard, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	return newGuard(store, s)
}

func newGuard(store Store, s settings) (*Guard, error) {
	g := &Guard{
		store: store, settings: s, secret: s.secret, counters: newCounters(), clock: wallClock{},
		attempts: make(map[*Attempt]struct{}),
	}
	if keeper, ok := store.(SecretKeeper); ok {
		if g.secret != nil {
			return nil, errors.New("the store keeps a secret, with another one every repeat would be a mismatch: leave out WithSecret")
		}
		g.secret = keeper.Secret()
	}
	if len(g.secret) < 16 {
		return nil, errors.New("the store keeps no secret: pass WithSecret with at least 16 random bytes")
	}
	g.recorder, _ = store.(EventRecorder)
	g.waiter, _ = store.(Waiter)
	if c, ok := store.(Clock); ok {
		g.clock = c
	}
	if l, ok := store.(Liveness); ok {
		g.owner, g.alive = l.Owner, l.Alive
	} else {
		id := "g:" + randomHex(16)
		g.owner = func() string { return id }
		g.alive = func(string) bool { return true }
	}
	return g, nil
}

// Store returns the store the guard works on.
func (g *Guard) Store() Store { return g.store }

// BoltStore returns the store the guard works on, or an error that matches
// ErrNoTransactions if it is none with transactions: Open makes one that is.
func (g *Guard) BoltStore() (*BoltStore, error) {
	if s, ok := g.store.(*BoltStore); ok {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %T", ErrNoTransactions, g.store)
}

// Policy returns the policy of calls that do not give another one.
func (g *Guard) Policy() Policy { return g.settings.call.policy }

// Counters returns what the guard has seen since it was made.
func (g *Guard) Counters() Counters { return g.counters.snapshot() }

// Reject counts a request that a package on top of the guard has refused for its
// key, as a record of that kind would have been made.
func (g *Guard) Reject(kind string, err *KeyError) {
	g.emit(Event{Kind: EventRejected, RecordKind: kind, Key: err.Key, Reason: err.Reason, Err: err})
}

// Unprotected counts work that such a package lets be done without the guard, with
// the reason: a missing key, or a store that cannot be used.
func (g *Guard) Unprotected(kind string, reason error) {
	g.emit(Event{Kind: EventUnprotected, RecordKind: kind, Err: reason})
}

// Close lets no new attempt begin, waits until the running ones have ended and
// are recorded, and then stops what Open started: the janitor and the store. A
// second Close returns nil. It must not be called from inside a guarded
// function, which it would wait for.
func (g *Guard) Close() error { return g.Shutdown(context.Background()) }

// Shutdown is Close with a limit: when ctx ends first, it cancels the contexts of
// the functions still running with cause ErrLeaseLost, closes all the same and
// returns ctx.Err(). An attempt that does not end before the store is closed gets
// ErrNotRecorded, and its key is Interrupted for whoever opens the file next.
func (g *Guard) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	first := !g.closed
	g.closed = true
	g.mu.Unlock()
	if !first {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		g.running.Wait()
		close(ended)
	}()
	var errs []error
	select {
	case <-ended:
	case <-ctx.Done():
		errs = append(errs, ctx.Err())
		g.cutOff()
	}
	for _, c := range g.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// enter registers an attempt with Close; the attempt calls g.running.Done.
func (g *Guard) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	g.running.Add(1)
	return nil
}

// cutOff tells every running function that its key will be taken for
// interrupted: the next to open the file cannot know that it still runs.
func (g *Guard) cutOff() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for a := range g.attempts {
		a.cancel(cutOffCause())
	}
	g.attempts = nil
}

func cutOffCause() error { return fmt.Errorf("%w: the guard was shut down", ErrLeaseLost) }

// began registers an attempt whose function is about to run.
func (g *Guard) began(a *Attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.attempts == nil {
		a.cancel(cutOffCause())
		return
	}
	g.attempts[a] = struct{}{}
}

func (g *Guard) ended(a *Attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.attempts, a)
}

// now is the time records are stamped with.
func (g *Guard) now() time.Time { return g.clock.Now().UTC().Truncate(time.Microsecond) }

// emit counts, stores, logs and hands on one event.
func (g *Guard) emit(e Event) {
	g.counters.add(e)
	if g.recorder != nil {
		g.recorder.RecordEvent(e)
	}
	if g.settings.logger != nil {
		logEvent(g.settings.logger, e)
	}
	if g.settings.observer != nil {
		g.settings.observer(e)
	}
}

// call is one call of Do on its way to an answer.
type call struct {
	*callSettings
	key     Key
	holds   *holds // of a DoTx: where its key is held in place of a record
	fp      Fingerprint
	traceID string
	began   time.Time // zero until the call has to wait
	waited  time.Duration
}

// newCall checks everything that can be checked without the store.
func (g *Guard) newCall(ctx context.Context, key Key, input any, opts []CallOption) (call, error) {
	c := call{callSettings: &g.settings.call, key: key}
	if err := key.Validate(); err != nil {
		var bad *KeyError
		errors.As(err, &bad)
		g.emit(Event{Kind: EventRejected, Reason: bad.Reason, Err: err})
		return c, err
	}
	if len(opts) > 0 {
		own := g.settings.call
		for _, o := range opts {
			o.applyCall(&own)
		}
		if err := own.validate(); err != nil {
			return c, err
		}
		c.callSettings = &own
	}
	c.traceID = c.callSettings.traceID
	if c.traceID == "" && g.settings.traceFrom != nil {
		c.traceID = g.settings.traceFrom(ctx)
	}
	c.traceID = cutText(c.traceID, maxTraceBytes)
	var err error
	c.fp, err = NewFingerprint(g.secret, input)
	return c, err
}

func (c *call) event(kind EventKind, rec *Record, err error) Event {
	return Event{
		Kind: kind, Key: c.key, Version: rec.Version, Attempt: rec.Attempt, TraceID: c.traceID,
		RecordKind: c.kind, Waited: c.waited, Err: err,
	}
}

// storeError reports a failure of the store to the caller. An ended context of
// the caller is not the store's failure.
func (g *Guard) storeError(ctx context.Context, c *call, op string, err error) error {
	err = fmt.Errorf("%s %q: %w", op, c.key.String(), err)
	if ctx.Err() == nil {
		g.emit(c.event(EventStoreError, &Record{}, err))
	}
	return err
}

// cutText shortens text from outside to a field's limit, at a rune boundary.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xC0 == 0x80 {
		limit--
	}
	return s[:limit]
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails: crypto/rand aborts the process instead
	return hex.EncodeToString(b)
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }
