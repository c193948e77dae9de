package outbox

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/idembolt/idem"
)

// Keys of the relay's bucket.
var (
	keyRun      = []byte("run")      // a relay runs, or has died
	keyInFlight = []byte("inflight") // what a careful relay is publishing
	keyState    = []byte("state")
	keyReturned = []byte("returned")
)

// Stats is what is in an outbox, and what has become of events since it was first
// used.
type Stats struct {
	// Depth is the number of events that wait, those in flight included.
	Depth uint64
	// Oldest is when the first of them was created, and Lag its age. Both are zero
	// if there is none.
	Oldest time.Time
	Lag    time.Duration
	// Parked is the number of events that are parked now.
	Parked uint64
	// Published counts events, Failed attempts. Of those before a crash the last
	// ones may be missing; what is published again counts once.
	Published, Failed uint64
}

// relayState is kept with every commit of a relay.
type relayState struct {
	Last      uint64 `json:"l"` // the highest number seen
	Removed   uint64 `json:"r"` // events that were published or parked
	Published uint64 `json:"p"`
	Failed    uint64 `json:"f"`
	Parked    uint64 `json:"k"`
}

// Stats reads them. Its cost does not depend on the number of events.
func (o *Outbox) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	err := o.store.View(ctx, func(tx *idem.Tx) error {
		state, err := o.state(tx)
		if err != nil {
			return err
		}
		returned, err := tx.Bucket(o.relayBucket()).Get(keyReturned)
		if err != nil {
			return err
		}
		s.Published, s.Failed = state.Published, state.Failed
		s.Parked = state.Parked - min(state.Parked, parseCount(returned))
		highest, err := o.findHighest(tx, state.Last)
		if err != nil {
			return err
		}
		s.Depth = highest - min(highest, state.Removed)
		return o.oldest(tx, &s)
	})
	if err != nil {
		return Stats{}, fmt.Errorf("stats of outbox %q: %w", o.name, err)
	}
	return s, nil
}

func (o *Outbox) state(tx *idem.Tx) (state relayState, err error) {
	enc, err := tx.Bucket(o.relayBucket()).Get(keyState)
	if err != nil || enc == nil {
		return state, err
	}
	if err := json.Unmarshal(enc, &state); err != nil {
		return state, fmt.Errorf("decode the relay's state: %w", err)
	}
	return state, nil
}

func (o *Outbox) oldest(tx *idem.Tx, s *Stats) error {
	for p, err := range (stretch{0, math.MaxUint64}).pairs(tx.Bucket(o.name)) {
		if err != nil {
			return err
		}
		if e, err := decodeEvent(p.Value); err == nil {
			s.Oldest = e.CreatedAt
			s.Lag = max(0, o.now().Sub(e.CreatedAt))
		}
		return nil
	}
	return nil
}

// findHighest returns the highest number that was given. Every number is an event
// that waits or was removed, so this is all that is needed to know how many wait.
// A bucket is read forwards only: the end is found by doubling the step from what
// is known, and then halving it.
func (o *Outbox) findHighest(tx *idem.Tx, known uint64) (uint64, error) {
	o.mu.Lock()
	known = max(known, o.highest)
	o.mu.Unlock()
	step := uint64(1)
	for up := true; step > 0; {
		if known > math.MaxUint64-step {
			break
		}
		found, err := o.firstFrom(tx, known+step)
		if err != nil {
			return 0, err
		}
		switch {
		case found > 0:
			known = found
			if up {
				step *= 2
			}
		default:
			up = false
			step /= 2
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.highest = max(o.highest, known)
	return known, nil
}

// firstFrom returns the first number from one on, or 0.
func (o *Outbox) firstFrom(tx *idem.Tx, from uint64) (uint64, error) {
	for p, err := range (stretch{from, math.MaxUint64}).pairs(tx.Bucket(o.name)) {
		if err != nil {
			return 0, err
		}
		return binary.BigEndian.Uint64(p.Key), nil
	}
	return 0, nil
}
