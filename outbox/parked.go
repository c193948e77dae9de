package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/idembolt/idem"
)

// ParkedEvent is an event that was moved out of the way.
type ParkedEvent struct {
	// Event is the event. Bytes that were no event are parked under the id
	// "undecodable-" and their number, as the Payload and cut to a MiB, without the
	// other fields; they cannot be retried.
	Event Event
	// Number was its place in the outbox.
	Number uint64
	// Attempts is how many have failed, Error the last one's error.
	Attempts int
	Error    string
	// ParkedAt is UTC with microseconds.
	ParkedAt time.Time
}

type storedParked struct {
	Event    storedEvent `json:"ev"`
	Number   uint64      `json:"s"`
	Attempts int         `json:"n"`
	Error    string      `json:"e"`
	ParkedAt int64       `json:"pa"`
}

func (p *ParkedEvent) encode() ([]byte, error) {
	return json.Marshal(storedParked{p.Event.stored(), p.Number, p.Attempts, p.Error, p.ParkedAt.UnixMicro()})
}

func decodeParked(p idem.Pair) (ParkedEvent, error) {
	var s storedParked
	if err := json.Unmarshal(p.Value, &s); err != nil {
		return ParkedEvent{}, fmt.Errorf("decode parked event %q: %w", p.Key, err)
	}
	return ParkedEvent{s.Event.event(), s.Number, s.Attempts, s.Error, time.UnixMicro(s.ParkedAt).UTC()}, nil
}

// key: two events may share an id, and neither may be lost for it. An id has no
// zero byte.
func (p *ParkedEvent) key() []byte {
	return append(append([]byte(p.Event.ID), 0), numberKey(p.Number)...)
}

// undecodable stands in for bytes that are no event.
func undecodable(e *Entry) Event {
	return Event{
		ID:      "undecodable-" + strconv.FormatUint(e.Number, 10),
		Payload: e.raw[:min(len(e.raw), MaxPayloadBytes)], CreatedAt: time.Unix(0, 0).UTC(),
	}
}

// Parked yields the parked events in the order of their ids. The sequence is not a
// snapshot. One that cannot be read is yielded as an error, and the sequence goes
// on; any other error ends it.
func (o *Outbox) Parked(ctx context.Context) iter.Seq2[ParkedEvent, error] {
	return func(yield func(ParkedEvent, error) bool) {
		const page = 64
		from := []byte{0}
		for {
			pairs, err := o.parkedPage(ctx, from, page)
			if err != nil {
				yield(ParkedEvent{}, err)
				return
			}
			for _, p := range pairs {
				if !yield(decodeParked(p)) {
					return
				}
			}
			if len(pairs) < page {
				return
			}
			from = append(pairs[page-1].Key, 0)
		}
	}
}

func (o *Outbox) parkedPage(ctx context.Context, from []byte, limit int) (pairs []idem.Pair, err error) {
	err = o.store.View(ctx, func(tx *idem.Tx) error {
		for p, err := range tx.Bucket(o.parkedBucket()).Range(from, nil) {
			if err != nil {
				return err
			}
			if pairs = append(pairs, p); len(pairs) == limit {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the parked events of outbox %q: %w", o.name, err)
	}
	return pairs, nil
}

// Retry puts a parked event back, at the end of the outbox and without failed
// attempts: it is published after what was appended before Retry. It returns
// ErrNotParked if there is none of this id.
func (o *Outbox) Retry(ctx context.Context, id string) error {
	return o.unpark(ctx, "retry", id, func(tx *idem.Tx, p idem.Pair) error {
		parked, err := decodeParked(p)
		if err != nil {
			return err
		}
		return o.Append(tx, parked.Event)
	})
}

// Drop removes a parked event for good. It returns ErrNotParked if there is none
// of this id.
func (o *Outbox) Drop(ctx context.Context, id string) error {
	return o.unpark(ctx, "drop", id, func(*idem.Tx, idem.Pair) error { return nil })
}

func (o *Outbox) unpark(ctx context.Context, op, id string, each func(*idem.Tx, idem.Pair) error) error {
	err := o.store.Update(ctx, func(tx *idem.Tx) error {
		if nameFault(id) != "" {
			return ErrNotParked
		}
		from := append([]byte(id), 0)
		to := append(append([]byte(id), 0), numberKey(1<<64-1)...)
		bucket := tx.Bucket(o.parkedBucket())
		n := uint64(0)
		for p, err := range bucket.Range(from, to) {
			if err != nil {
				return err
			}
			if err := errors.Join(bucket.Delete(p.Key), each(tx, p)); err != nil {
				return err
			}
			n++
		}
		if n == 0 {
			return ErrNotParked
		}
		return o.countReturned(tx, n)
	})
	if err != nil {
		return fmt.Errorf("%s %q: %w", op, id, err)
	}
	return nil
}

// countReturned keeps the number of events that have left the parked ones. The
// relay does not write it, so neither has to wait for the other.
func (o *Outbox) countReturned(tx *idem.Tx, n uint64) error {
	relay := tx.Bucket(o.relayBucket())
	before, err := relay.Get(keyReturned)
	if err != nil {
		return err
	}
	return relay.Put(keyReturned, strconv.AppendUint(nil, parseCount(before)+n, 10))
}

func parseCount(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(text), 10, 64) // a count that is damaged begins anew
	return n
}
