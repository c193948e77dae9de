package idemhttp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/idembolt/idem"
)

type keyContextKey struct{}

// WithKey returns a context whose unsafe requests a Transport sends under the
// key. It must be 1 to 255 printable ASCII characters, spaces included; RoundTrip
// refuses any other. It is given bare, without the quotes it is sent in.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyContextKey{}, key)
}

// WithRandomKey is WithKey with a fresh random key: every retry that uses the
// returned context sends the same one. It protects against what happens while
// the process lives; for restarts there are Intents.
func WithRandomKey(ctx context.Context) context.Context { return WithKey(ctx, randomKey()) }

// WithIntent is WithKey with the key of the intent. The zero Intent, which Begin
// returns beside an error, makes RoundTrip fail.
func WithIntent(ctx context.Context, in Intent) context.Context { return WithKey(ctx, in.Key) }

// validateKey returns a *idem.KeyError for a key that cannot be sent. The limit
// is that of the ids under which a server on idem keeps it.
func validateKey(key string) error {
	reject := func(reason idem.RejectReason, detail string) error {
		return &idem.KeyError{Key: idem.Key{ID: key}, Reason: reason, Detail: detail}
	}
	switch {
	case key == "":
		return reject(idem.RejectMissing, "the idempotency key in the request's context is empty")
	case len(key) > idem.MaxIDBytes:
		return reject(idem.RejectTooLong, fmt.Sprintf("the idempotency key has %d bytes, at most %d are allowed", len(key), idem.MaxIDBytes))
	case strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) >= 0:
		return reject(idem.RejectCharset, "the idempotency key may hold only printable ASCII characters")
	}
	return nil
}

// quoted writes a valid key as a string of RFC 9651. It is not strconv.Quote,
// which knows escapes that the RFC does not.
func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// randomKey returns a UUID of version 4. That leaves 122 of its 128 bits to
// chance; with the other 6 random too, servers that check would refuse most.
func randomKey() string {
	var b [16]byte
	rand.Read(b[:])
	return uuid(b, 4)
}

// derivedKey returns a UUID of version 8 that depends on its arguments only and
// tells nobody what they were, if the key is random.
func derivedKey(key, name string) string {
	h := sha256.New()
	fmt.Fprintf(h, "idemhttp derived key\x00%d\x00%s%s", len(key), key, name)
	return uuid([16]byte(h.Sum(nil)), 8)
}

// uuid writes b in the form of RFC 9562, with the version and the variant set.
func uuid(b [16]byte, version byte) string {
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
