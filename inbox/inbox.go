package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/idembolt/idem"
)

const (
	// DefaultRetention is how long a message is remembered unless WithRetention
	// says otherwise.
	DefaultRetention = 7 * 24 * time.Hour

	scopePrefix = "inbox:"
	kind        = "inbox"
	hashPrefix  = "sha256:"
)

// Outcome is what has become of a message. Whatever it is, it can be acknowledged.
// The zero value comes with an error.
type Outcome int

const (
	// Handled: the handler ran in this call, and its effect is durable.
	Handled Outcome = iota + 1
	// Duplicate: the message was handled before. The handler did not run.
	Duplicate
)

// String returns the lower-case name.
func (o Outcome) String() string {
	switch o {
	case Handled:
		return "handled"
	case Duplicate:
		return "duplicate"
	}
	return fmt.Sprintf("outcome(%d)", int(o))
}

// Inbox knows the messages of one source. It is safe for concurrent use.
type Inbox struct {
	guard     *idem.Guard
	scope     string
	retention time.Duration
}

// Option configures an Inbox.
type Option func(*Inbox)

// WithRetention sets how long a message is remembered after it was handled. The
// default is DefaultRetention.
func WithRetention(d time.Duration) Option { return func(in *Inbox) { in.retention = d } }

// New returns the inbox of a source: the queue, topic or sender within which
// message ids are unique. Sources do not know each other's messages. A source has
// 1 to 122 bytes of ASCII letters, digits and "._:@-".
//
// Of the guard's options its policy's answer to interrupted attempts, its waiting
// (see idem.WithWait: a delivery then waits for another one before it is ErrBusy),
// its classifier and its observers count. Errors: idem.ErrNoTransactions if the
// guard does not work on a *idem.BoltStore, *idem.KeyError for a bad source,
// *idem.PolicyError for a retention that does not fit the guard's policy.
func New(guard *idem.Guard, source string, opts ...Option) (*Inbox, error) {
	in := &Inbox{guard: guard, scope: scopePrefix + source, retention: DefaultRetention}
	for _, o := range opts {
		o(in)
	}
	if guard == nil {
		return nil, errors.New("inbox: the guard is nil")
	}
	if _, err := guard.BoltStore(); err != nil {
		return nil, fmt.Errorf("inbox %q: %w", source, err)
	}
	policy := guard.Policy()
	policy.Retention = in.retention
	fault := policy.Validate()
	if source == "" {
		fault = idem.Key{ID: "any"}.Validate()
	} else if err := (idem.Key{Scope: in.scope, ID: "any"}).Validate(); err != nil {
		fault = err
	}
	if fault != nil {
		return nil, fmt.Errorf("inbox %q: %w", source, fault)
	}
	return in, nil
}

// HandleOption configures one call of Handle.
type HandleOption func(*delivery)

type delivery struct{ content any }

// WithContent has the content compared with that of the first delivery, of which
// only a keyed hash is kept. See idem.NewFingerprint for what it may be. All
// deliveries of a source should come with content or none.
func WithContent(content any) HandleOption { return func(d *delivery) { d.content = content } }

// Handle runs fn for a message unless it was handled before, and makes what fn
// writes to its transaction durable together with the mark. The package
// documentation says what to do with the outcome and the errors.
//
// The id follows the rules of an idem.Key's ID; see ID for those that do not. fn
// may run more than once before it commits, and must do nothing that cannot be
// repeated, except through its transaction. If ctx ends before the commit nothing
// is kept.
func (in *Inbox) Handle(ctx context.Context, messageID string,
	fn func(ctx context.Context, tx *idem.Tx) error, opts ...HandleOption,
) (Outcome, error) {
	var d delivery
	for _, o := range opts {
		o(&d)
	}
	key := idem.Key{Scope: in.scope, ID: messageID}
	res, err := idem.DoTx(ctx, in.guard, key, d.content, func(ctx context.Context, tx *idem.Tx) (struct{}, error) {
		return struct{}{}, fn(ctx, tx)
	}, idem.WithKind(kind), idem.WithRetention(in.retention))
	switch {
	case errors.Is(err, idem.ErrInProgress):
		return 0, fmt.Errorf("%w: %w", ErrBusy, err)
	case err != nil:
		return 0, err
	case res.Replayed:
		return Duplicate, nil
	}
	return Handled, nil
}

// ID makes an id of 1 to 255 bytes of text out of any that is not empty, for
// sources whose ids may be longer or hold control characters: such an id becomes
// "sha256:" and its hash, and so does one that begins with "sha256:", so that none
// can pass for another. Others stay as they are.
func ID(s string) string {
	if s == "" || !strings.HasPrefix(s, hashPrefix) && (idem.Key{Scope: kind, ID: s}).Validate() == nil {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return hashPrefix + hex.EncodeToString(sum[:])
}
