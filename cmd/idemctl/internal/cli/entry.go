package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/idembolt/idem"
)

// States that only tools know, beside those of idem.State.
const (
	stateExpired = "expired" // its time is over, it answers nothing any more
	stateDamaged = "damaged" // it cannot be read
)

// stateNames are the states that --state takes.
func stateNames() []string {
	var names []string
	for _, s := range idem.States() {
		names = append(names, s.String())
	}
	return append(names, stateExpired)
}

// entry is a record as a person should see it.
type entry struct {
	idem.Record
	// State is the effective state, by name: a Processing record whose owner is
	// gone is interrupted, whatever is stored.
	State string
	// OwnerAlive says whether the owner of a Processing record may still be at
	// work; nil for every other record.
	OwnerAlive *bool
	// Damage is why the record cannot be read, or nil.
	Damage error
	// detail is what its value says, where that was asked for; else nil.
	detail detail
	// summary is detail.brief in a list that has asked for it, which keeps no more.
	summary string
}

// judge tells what a record means at the time of the store.
type judge struct {
	store *idem.BoltStore
	now   time.Time
	grace bool
}

func newJudge(s *idem.BoltStore, info idem.BoltInfo) judge {
	return judge{store: s, now: s.Now(), grace: !info.GraceUntil.IsZero()}
}

// entry judges one record, or what kept it from being read.
func (j judge) entry(ctx context.Context, rec idem.Record, damage error) entry {
	e := entry{Record: rec, Damage: damage}
	if damage != nil {
		e.State = stateDamaged
		return e
	}
	e.State = rec.State.String()
	if rec.State == idem.Processing {
		owner, _, _ := strings.Cut(rec.Owner, "#")
		alive := j.store.Alive(owner)
		e.OwnerAlive = &alive
		if !alive || !j.now.Before(rec.LeaseUntil) {
			e.State = idem.Interrupted.String()
		}
	}
	if j.expired(ctx, &rec) {
		e.State = stateExpired
	}
	return e
}

// expired asks the store only where its answer may differ from the record's:
// what ran out while the service was down still answers for a while.
func (j judge) expired(ctx context.Context, rec *idem.Record) bool {
	if !rec.Expired(j.now) || !j.grace {
		return rec.Expired(j.now)
	}
	_, err := j.store.Get(ctx, rec.Key)
	return errors.Is(err, idem.ErrNotFound)
}

// overdue is how long the lease of a Processing record has been over, or 0.
func (e *entry) overdue(now time.Time) time.Duration {
	if e.LeaseUntil.IsZero() {
		return 0
	}
	return max(0, now.Sub(e.LeaseUntil))
}

// age is the time since the key was first claimed.
func (e *entry) age(now time.Time) time.Duration { return max(0, now.Sub(e.CreatedAt)) }

// settledNote begins the note of a record that resolve has settled.
const settledNote = "resolved:"

// settledByHand reports whether a person and not the attempt ended the record.
func (e *entry) settledByHand() bool { return strings.HasPrefix(e.Note, settledNote) }

// took is how long the last attempt ran. It is not known while it runs, nor if a
// person settled it, who took the most of the time. What stands for no work has not
// run: that an object changes its state after a week says nothing of a function.
func (e *entry) took() (d time.Duration, known bool) {
	if e.Record.State == idem.Processing || e.settledByHand() || e.StartedAt.IsZero() || e.UpdatedAt.Before(e.StartedAt) ||
		kindOf(e.Kind).standing {
		return 0, false
	}
	return e.UpdatedAt.Sub(e.StartedAt), true
}
