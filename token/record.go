package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/idembolt/idem"
)

const kind = "token"

// content is the value of a token's record.
type content struct {
	Expires time.Time `json:"expires"`
	Subject string    `json:"subject,omitempty"`
	Used    time.Time `json:"used,omitzero"`
}

// keyOf returns the key of a token's record. Text that cannot be a token has none.
func (t *Tokens) keyOf(value string) (idem.Key, bool) {
	if len(value) != valueLength {
		return idem.Key{}, false
	}
	if _, err := base64.RawURLEncoding.DecodeString(value); err != nil {
		return idem.Key{}, false
	}
	sum := sha256.Sum256([]byte(value))
	return idem.Key{Scope: t.scope, ID: hex.EncodeToString(sum[:])}, true
}

// subjectMark is what is stored of a subject. Its key is the token, which the
// store does not hold, so that subjects cannot be guessed from the file.
func subjectMark(value, subject string) string {
	if subject == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(value))
	mac.Write([]byte("idem token subject\x00" + subject))
	return hex.EncodeToString(mac.Sum(nil))
}

// newRecord is the record of an open token.
func (t *Tokens) newRecord(value string, c content, now time.Time) (idem.Record, error) {
	key, _ := t.keyOf(value)
	text, err := json.Marshal(c)
	until := c.Expires.Add(t.memory)
	return idem.Record{
		Key: key, State: idem.Processing, Kind: kind, Attempt: 1, Value: text,
		CreatedAt: now, StartedAt: now, UpdatedAt: now, LeaseUntil: until, ExpiresAt: until,
	}, err
}

// usedRecord is rec after its token was consumed by owner.
func usedRecord(rec idem.Record, c content, now time.Time, owner string) (idem.Record, error) {
	c.Used = now
	text, err := json.Marshal(c)
	rec.State, rec.Owner, rec.Value = idem.Completed, owner, text
	rec.UpdatedAt, rec.LeaseUntil = now, time.Time{}
	return rec, err
}

// read returns the content of a token's record.
func read(rec *idem.Record) (content, error) {
	if rec.Kind != kind {
		return content{}, fmt.Errorf("the record is not of a token but of kind %q", rec.Kind)
	}
	var c content
	if err := json.Unmarshal(rec.Value, &c); err != nil {
		return content{}, fmt.Errorf("the record of the token cannot be read: %w", err)
	}
	if c.Used.IsZero() && rec.State != idem.Processing { // settled by hand
		c.Used = rec.UpdatedAt
	}
	return c, nil
}
