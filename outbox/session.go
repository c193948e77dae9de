package outbox

import (
	"context"
	"fmt"
	"time"
)

// session is one Run of a relay. A loop owns all of its state. What takes time
// runs beside the loop and reports to it by a channel: publishes, one read and one
// commit.
type session struct {
	*Relay
	id         string
	publishing context.Context
	cut        context.CancelFunc // ends publishing
	stopped    chan struct{}      // closed when stopping is set
	stopping   bool

	aggregates map[aggregateName]*aggregate
	ready      []*aggregate
	waiting    waitHeap
	timer      *time.Timer
	timerDue   time.Time
	window
	careful

	busy    int // publishes that run or are announced
	results chan result

	state   relayState
	next    marks // what the next commit will say
	marking bool
	marked  chan marks
}

// newSession makes one that has nothing to do yet.
func newSession(r *Relay, id string) *session {
	s := &session{
		Relay: r, id: id, stopped: make(chan struct{}),
		aggregates: make(map[aggregateName]*aggregate),
		timer:      time.NewTimer(time.Hour),
		results:    make(chan result, r.workers), // so that one that is abandoned can end
		marked:     make(chan marks, 1),
	}
	s.timer.Stop()
	s.window.init()
	s.listed = make(map[uint64]struct{})
	s.next.notes = make(map[uint64]attemptNote)
	return s
}

// work publishes until ctx ends or the store fails.
func (s *session) work(ctx context.Context) error {
	s.watch()
	defer func() { s.unwatch() }()
	for ctx.Err() == nil {
		s.wake()
		s.dispatch()
		s.startMark()
		s.startRead()
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// step waits for something to happen.
func (s *session) step(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.timer.C:
		s.timerDue = time.Time{}
	case <-s.changed:
		s.unwatch()
		s.watch()
	case c := <-s.chunks:
		return s.take(c)
	case m := <-s.marked:
		return s.endMark(m)
	case res := <-s.results:
		return s.endAll(res)
	}
	return nil
}

// endAll deals with all publishes that have ended: the loop's other work is then
// done once for them.
func (s *session) endAll(res result) error {
	for {
		if err := s.end(res); err != nil {
			return err
		}
		select {
		case res = <-s.results:
		default:
			return nil
		}
	}
}

// stop lets running publishes end, and marks them unless the store has failed. It
// returns the error with which the work has ended, or the first that comes up.
func (s *session) stop(failed error) error {
	s.stopping = true
	close(s.stopped)
	limit := time.NewTimer(s.grace)
	defer limit.Stop()
	abandoned := false
	for s.busy > 0 && !abandoned || s.marking || failed == nil && s.unsaid() {
		if failed == nil {
			s.startMark()
		}
		var err error
		select {
		case res := <-s.results:
			err = s.end(res)
		case m := <-s.marked:
			err = s.endMark(m)
		case <-limit.C:
			abandoned = s.publishing.Err() != nil
			s.cut()
			limit.Reset(abandonAfter)
		}
		if failed == nil {
			failed = err
		}
	}
	if s.reading {
		<-s.chunks
	}
	if failed == nil && s.busy > 0 {
		failed = fmt.Errorf("%w: %d events are open", ErrAbandoned, s.busy)
	}
	return failed
}

// watch hears of the next change of the bucket.
func (s *session) watch() {
	s.changes++
	s.atEnd = false
	s.changed, s.unwatch = s.outbox.store.WatchBucket(s.outbox.name)
}
