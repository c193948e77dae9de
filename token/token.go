package token

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

const (
	// DefaultTTL is how long a token is good unless WithTTL changes it.
	DefaultTTL = 5 * time.Minute
	// MinTTL and MaxTTL bound what WithTTL may set.
	MinTTL = time.Second
	MaxTTL = 24 * time.Hour
	// DefaultMemory is how long a token is remembered unless WithMemory changes it.
	DefaultMemory = 24 * time.Hour

	randomBytes = 24
	valueLength = 32 // of that in base64, without bits to spare: one spelling each
)

// Tokens issues and consumes the tokens of a scope. It is safe for concurrent use,
// also by several processes if the store is.
type Tokens struct {
	store       idem.Store
	scope       string
	ttl, memory time.Duration
}

// Option configures Tokens. The last one wins.
type Option func(*Tokens)

// WithTTL sets how long a token is good after it was issued: MinTTL to MaxTTL. The
// default is DefaultTTL.
func WithTTL(d time.Duration) Option { return func(t *Tokens) { t.ttl = d } }

// WithMemory sets how long after its end a token is remembered, used or not, so
// that Consume can say ErrUsed or ErrExpired rather than ErrUnknown. 0 forgets it
// at once. Together with the TTL at most idem.MaxRetention. The default is
// DefaultMemory.
func WithMemory(d time.Duration) Option { return func(t *Tokens) { t.memory = d } }

// New returns the tokens of a scope, which names the form or operation and, where
// there are tenants, the tenant: a token is good in its scope only. It must not be
// a scope that anything else on the store uses.
//
// Errors: *idem.KeyError for a scope that breaks a rule of idem.Key,
// *idem.PolicyError for a TTL or a memory out of range.
func New(store idem.Store, scope string, opts ...Option) (*Tokens, error) {
	if store == nil {
		return nil, errors.New("token: New needs a store")
	}
	t := &Tokens{store: store, scope: scope, ttl: DefaultTTL, memory: DefaultMemory}
	for _, o := range opts {
		o(t)
	}
	if err := (idem.Key{Scope: scope, ID: "any"}).Validate(); err != nil {
		return nil, err
	}
	if err := t.validate(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Tokens) validate() error {
	if t.ttl < MinTTL || t.ttl > MaxTTL {
		return &idem.PolicyError{Field: "TTL", Rule: fmt.Sprintf("must be %s to %s, it is %s", MinTTL, MaxTTL, t.ttl)}
	}
	if longest := idem.MaxRetention - t.ttl; t.memory < 0 || t.memory > longest {
		return &idem.PolicyError{Field: "Memory", Rule: fmt.Sprintf("must be 0 to %s, it is %s", longest, t.memory)}
	}
	return nil
}

// On returns the same tokens on another store. With idem.Tx.Records a token is
// consumed, or issued, exactly if the transaction commits.
func (t *Tokens) On(store idem.Store) *Tokens {
	on := *t
	on.store = store
	return &on
}

// Token is a token that was issued.
type Token struct {
	// Value is what the client sends back: 32 characters of the base64url
	// alphabet. It is a secret of the client's until it is used.
	Value string
	// ExpiresAt is from when on Consume refuses it.
	ExpiresAt time.Time
}

// Issue makes a new token, durable when it returns. The subject is who may consume
// it, for instance the id of a user or of a session; "" is a subject like any
// other, for where there is none. It follows the rules of an idem.Key's ID; for
// one that breaks them the error is a *idem.KeyError. Other errors are the
// store's.
func (t *Tokens) Issue(ctx context.Context, subject string) (Token, error) {
	if err := t.checkSubject(subject); err != nil {
		return Token{}, err
	}
	value := randomText()
	now := idem.StoreNow(t.store)
	c := content{Expires: now.Add(t.ttl), Subject: subjectMark(value, subject)}
	rec, err := t.newRecord(value, c, now)
	if err == nil {
		_, err = t.store.Create(ctx, rec)
	}
	if err != nil {
		return Token{}, fmt.Errorf("issue token %q: %w", rec.Key.String(), err)
	}
	return Token{Value: value, ExpiresAt: c.Expires}, nil
}

func (t *Tokens) checkSubject(subject string) error {
	if subject == "" {
		return nil
	}
	return idem.Key{Scope: t.scope, ID: subject}.Validate()
}

func randomText() string {
	b := make([]byte, randomBytes)
	rand.Read(b) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(b)
}
