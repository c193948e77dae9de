package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/idembolt/idem"
)

// lockDetail is a lock that is held, or was lost.
type lockDetail struct {
	Held  bool    `json:"held"`
	Since *string `json:"since"`
	// Fence is the number that the holder got. It is the version of the first
	// write, so it is not known any more when the lock was renewed.
	Fence       *uint64 `json:"fence"`
	FenceAtMost uint64  `json:"fence_at_most"`

	since time.Time
}

func describeLock(e *entry, _ time.Time) (detail, error) {
	d := lockDetail{
		Held: e.State == idem.Processing.String(), Since: jsonTime(e.StartedAt), FenceAtMost: e.Version, since: e.StartedAt,
	}
	if e.Record.State == idem.Processing && e.UpdatedAt.Equal(e.StartedAt) {
		d.Fence = &d.FenceAtMost
	}
	return d, nil
}

func (d lockDetail) brief() string {
	if d.Held {
		return "held"
	}
	return "free"
}

func (d lockDetail) block(b *detailBlock) {
	if !d.Held {
		b.line("Lock", "free: its last holder, since "+b.look.moment(d.since, b.now)+", is gone or has lost it")
	} else {
		b.line("Lock", "held since "+b.look.moment(d.since, b.now))
	}
	if d.Fence != nil {
		b.line("Fence", strconv.FormatUint(*d.Fence, 10))
	} else {
		b.line("Fence", fmt.Sprintf("at most %d", d.FenceAtMost))
	}
}

// debounceDetail is a name that was let through.
type debounceDetail struct {
	Active bool    `json:"active"`
	Until  *string `json:"until"`

	until time.Time
}

func describeDebounce(e *entry, now time.Time) (detail, error) {
	return debounceDetail{Active: now.Before(e.ExpiresAt), Until: jsonTime(e.ExpiresAt), until: e.ExpiresAt}, nil
}

func (d debounceDetail) brief() string {
	if d.Active {
		return "refused"
	}
	return "let through"
}

func (d debounceDetail) block(b *detailBlock) {
	if d.Active {
		b.line("Debounce", "refused until "+b.look.moment(d.until, b.now))
		return
	}
	b.line("Debounce", "let through again since "+b.look.moment(d.until, b.now))
}

// inboxDetail is a message.
type inboxDetail struct {
	HandledAt *string `json:"handled_at"`

	handled time.Time
}

func describeInbox(e *entry, _ time.Time) (detail, error) {
	if e.Record.State != idem.Completed && e.Record.State != idem.Failed {
		return inboxDetail{}, nil
	}
	return inboxDetail{HandledAt: jsonTime(e.UpdatedAt), handled: e.UpdatedAt}, nil
}

func (d inboxDetail) brief() string {
	if d.handled.IsZero() {
		return "not handled"
	}
	return "handled"
}

func (d inboxDetail) block(b *detailBlock) {
	if d.handled.IsZero() {
		b.line("Message", "not known to be handled")
		return
	}
	b.line("Message", "handled at "+b.look.moment(d.handled, b.now))
}
