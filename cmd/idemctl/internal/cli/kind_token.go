package cli

import (
	"encoding/json"
	"time"

	"github.com/idembolt/idem"
)

// tokenDetail is a one-time token.
type tokenDetail struct {
	State     string  `json:"state"`
	ExpiresAt *string `json:"expires_at"`
	UsedAt    *string `json:"used_at"`
	Bound     bool    `json:"bound"`

	expires, used time.Time
}

func describeToken(e *entry, now time.Time) (detail, error) {
	var v struct {
		Expires time.Time `json:"expires"`
		Subject string    `json:"subject"`
		Used    time.Time `json:"used"`
	}
	if err := json.Unmarshal(e.Value, &v); err != nil || v.Expires.IsZero() {
		return nil, unreadableError("a token")
	}
	if v.Used.IsZero() && e.Record.State != idem.Processing { // as package token sees it
		v.Used = e.UpdatedAt
	}
	d := tokenDetail{
		State: "open", ExpiresAt: jsonTime(v.Expires), UsedAt: jsonTime(v.Used), Bound: v.Subject != "",
		expires: v.Expires, used: v.Used,
	}
	switch {
	case !v.Used.IsZero():
		d.State = "used"
	case !now.Before(v.Expires):
		d.State = "expired"
	}
	return d, nil
}

func (d tokenDetail) brief() string { return d.State }

func (d tokenDetail) block(b *detailBlock) {
	switch d.State {
	case "open":
		b.line("Token", "open until "+b.look.moment(d.expires, b.now))
	case "used":
		b.line("Token", "used at "+b.look.moment(d.used, b.now))
	default:
		b.line("Token", "expired at "+b.look.moment(d.expires, b.now))
	}
	b.line("Subject", boundText(d.Bound))
}

func boundText(bound bool) string {
	if bound {
		return "bound to one"
	}
	return "none"
}
