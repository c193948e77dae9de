package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/idembolt/idem"
)

// marks is what one commit says. It writes without reading, so it is never in
// conflict with other transactions.
type marks struct {
	done      []done
	parked    []parked
	notes     map[uint64]attemptNote
	failed    uint64
	announced []*aggregate
	list      []uint64 // of what is announced; nil: as it was
	state     relayState
	err       error // of the commit
}

// done is a published event.
type done struct {
	of     *aggregate
	number uint64
	noted  bool // it has failed before
}

type parked struct {
	of    *aggregate // nil if it was not loaded
	entry Entry
}

// unsaid reports whether there is something to commit.
func (s *session) unsaid() bool {
	m := &s.next
	return s.listChanged || len(m.done)+len(m.parked)+len(m.notes)+len(m.announced) > 0
}

// startMark commits what has happened during the last commit.
func (s *session) startMark() {
	if s.marking || !s.unsaid() {
		return
	}
	s.marking = true
	m := s.takeMarks()
	ctx := context.WithoutCancel(s.publishing)
	go func() {
		m.err = s.patiently(func() error { return s.write(ctx, &m) })
		s.marked <- m
	}()
}

// takeMarks takes what one commit may hold.
func (s *session) takeMarks() marks {
	m := s.next
	s.next = marks{notes: make(map[uint64]attemptNote)}
	bytes := 0
	for i := range m.parked {
		if bytes += m.parked[i].entry.size; i > 0 && bytes > s.limits.commitBytes {
			m.parked, s.next.parked = m.parked[:i:i], slices.Clone(m.parked[i:])
			break
		}
	}
	if s.listChanged {
		s.listChanged = false
		m.list = append([]uint64{}, slices.Sorted(maps.Keys(s.listed))...)
	}
	s.state.Last = max(s.state.Last, s.frontier)
	s.state.Removed += uint64(len(m.done) + len(m.parked))
	s.state.Published += uint64(len(m.done))
	s.state.Parked += uint64(len(m.parked))
	s.state.Failed += m.failed
	m.state = s.state
	return m
}

// patiently writes again while the disk is full, until the relay is to stop.
func (s *session) patiently(write func() error) error {
	for failures := 0; ; failures++ {
		err := write()
		if !errors.Is(err, idem.ErrFull) {
			return err
		}
		again := time.NewTimer(s.backoff(failures))
		select {
		case <-again.C:
		case <-s.stopped:
			again.Stop()
			return err
		}
	}
}

func (s *session) write(ctx context.Context, m *marks) error {
	o := s.outbox
	return o.store.Update(ctx, func(tx *idem.Tx) error {
		events, attempts := tx.Bucket(o.name), tx.Bucket(o.attemptsBucket())
		for number, note := range m.notes {
			if err := putJSON(attempts, numberKey(number), note); err != nil {
				return err
			}
		}
		for _, d := range m.done {
			if err := events.Delete(numberKey(d.number)); err != nil {
				return err
			}
			if !d.noted {
				continue
			}
			if err := attempts.Delete(numberKey(d.number)); err != nil {
				return err
			}
		}
		for i := range m.parked {
			if err := s.park(tx, &m.parked[i].entry); err != nil {
				return err
			}
		}
		relay := tx.Bucket(o.relayBucket())
		if m.list != nil {
			if err := putJSON(relay, keyInFlight, m.list); err != nil {
				return err
			}
		}
		return putJSON(relay, keyState, m.state)
	})
}

// park moves an event.
func (s *session) park(tx *idem.Tx, e *Entry) error {
	o := s.outbox
	p := ParkedEvent{Event: e.Event, Number: e.Number, Attempts: e.Attempts, Error: e.LastError, ParkedAt: o.now()}
	enc, err := p.encode()
	if err != nil {
		return fmt.Errorf("park event %q: %w", e.Event.ID, err)
	}
	return errors.Join(
		tx.Bucket(o.name).Delete(numberKey(e.Number)),
		tx.Bucket(o.attemptsBucket()).Delete(numberKey(e.Number)),
		tx.Bucket(o.parkedBucket()).Put(p.key(), enc),
	)
}

func putJSON(b *idem.Bucket, key []byte, v any) error {
	enc, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(key, enc)
}

// endMark lets those go on who have waited for the commit.
func (s *session) endMark(m marks) error {
	s.marking = false
	if m.err != nil {
		return m.err
	}
	s.held -= len(m.done)
	for _, d := range m.done {
		d.of.unmarked--
		s.forget(d.of)
	}
	for _, p := range m.parked {
		e := p.of.pop()
		p.of.bytes -= e.size
		s.heldBytes -= e.size
		s.held--
		s.goOn(p.of)
		s.forget(p.of)
	}
	for _, a := range m.announced {
		if s.stopping {
			s.unlist(a)
			continue
		}
		s.launch(a)
	}
	return nil
}
