package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// runMark is in the file while a relay runs, and after it if it did not stop in an
// orderly way.
type runMark struct {
	Owner string `json:"o"` // the opening of the file
	ID    string `json:"id"`
}

const processEnded = "the process ended while it was published"

// Run publishes events until ctx ends, and then stops: it begins no publish, lets
// those that run go on for the grace period, ends their contexts after it, and
// commits what they have done. A publish that its ended context made fail is not
// counted as an attempt. Run returns nil then, within the grace period and about a
// second, or ErrAbandoned if a publisher had not returned.
//
// Other errors: ErrRunning if the outbox has a relay; ErrClosed, ErrReadOnly,
// ErrPoisoned and what else the store says. On a full disk the relay goes on
// publishing what it may keep in memory, and waits for room to mark it; if it has
// to stop before, Run returns ErrFull, and what is not marked is published again.
// Run may be called again after it has returned.
func (r *Relay) Run(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	if err := r.run(ctx); err != nil {
		return fmt.Errorf("relay of outbox %q: %w", r.outbox.name, err)
	}
	return nil
}

func (r *Relay) run(ctx context.Context) error {
	s := newSession(r, newID(r.outbox.now()))
	lasting := context.WithoutCancel(ctx)
	s.publishing, s.cut = context.WithCancel(lasting)
	defer s.cut()
	crashed, err := s.begin(lasting)
	if err != nil {
		return err
	}
	defer r.outbox.ended(s.id)
	if crashed {
		if err := s.blame(lasting); err != nil {
			return err
		}
	}
	if err := s.stop(s.work(ctx)); err != nil {
		return err
	}
	return r.outbox.store.Update(lasting, func(tx *idem.Tx) error {
		relay := tx.Bucket(r.outbox.relayBucket())
		return errors.Join(relay.Delete(keyInFlight), relay.Delete(keyRun))
	})
}

// ended remembers that a run left its mark because it failed, not because it still
// runs.
func (o *Outbox) ended(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lastRun = id
}

// begin takes the outbox, and reports whether a relay before this one has not
// stopped in an orderly way. That one belongs to another opening of the file, and
// so to a process that is dead, or is known to have ended.
func (s *session) begin(ctx context.Context) (crashed bool, err error) {
	o := s.outbox
	o.mu.Lock()
	ended := o.lastRun
	o.mu.Unlock()
	own := runMark{Owner: o.store.Owner(), ID: s.id}
	err = o.store.Update(ctx, func(tx *idem.Tx) error {
		relay := tx.Bucket(o.relayBucket())
		enc, err := relay.Get(keyRun)
		if err != nil {
			return err
		}
		var other runMark
		if crashed = enc != nil; crashed {
			_ = json.Unmarshal(enc, &other) // what cannot be read was not written by this opening
		}
		if other.Owner == own.Owner && other.ID != ended {
			return ErrRunning
		}
		if s.state, err = o.state(tx); err != nil {
			return err
		}
		if enc, err = json.Marshal(own); err != nil {
			return err
		}
		return relay.Put(keyRun, enc)
	})
	return crashed, err
}

// blame counts a failed attempt for what the relay before had announced and not
// ended, and has this one be careful.
func (s *session) blame(ctx context.Context) error {
	// What was in flight was within the window, so it is among the first to be
	// published now, or behind others that are, and among the first after the next
	// crash.
	s.careful.left = s.limits.windowEvents
	var list []uint64
	err := s.outbox.store.View(ctx, func(tx *idem.Tx) error {
		enc, err := tx.Bucket(s.outbox.relayBucket()).Get(keyInFlight)
		if err == nil && enc != nil {
			_ = json.Unmarshal(enc, &list) // a list that is damaged blames nobody
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, number := range list {
		entries, _, err := s.outbox.read(ctx, stretch{number, number}, 1, 1)
		if err != nil {
			return err
		}
		for i := range entries {
			s.blameOne(&entries[i])
		}
	}
	s.listChanged = true
	for s.unsaid() {
		m := s.takeMarks()
		if err := s.write(ctx, &m); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) blameOne(e *Entry) {
	if e.Err != nil {
		return // it was not published
	}
	s.countFailure(e, processEnded)
	s.next.notes[e.Number] = attemptNote{Count: e.Attempts, Error: e.LastError, Crashed: true}
	if s.isPoison(e) {
		s.next.parked = append(s.next.parked, parked{entry: *e})
	}
}
