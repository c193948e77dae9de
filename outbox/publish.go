package outbox

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// maxErrorBytes bounds what is kept of an error's text.
const maxErrorBytes = 4 << 10

// result is how a publish has ended.
type result struct {
	of          *aggregate
	event       Event
	failure     string // what the publisher's error says; empty if it has succeeded
	unavailable bool   // its error is marked so
	storeErr    error  // why there was nothing to publish
}

// careful is what is known of publishes that are announced in the file.
type careful struct {
	left        int // publishes that are still to be announced
	listed      map[uint64]struct{}
	listChanged bool
	suspect     *aggregate   // whose event a process has died of, perhaps; one at a time
	aside       []*aggregate // that wait for it
}

// wake takes those out of the back-off whose time has come.
func (s *session) wake() {
	if len(s.waiting) == 0 {
		return
	}
	now := time.Now()
	for len(s.waiting) > 0 && !s.waiting[0].due.After(now) {
		a := heap.Pop(&s.waiting).(*aggregate)
		if a.bare {
			a.bare = false
			s.held++
		}
		s.makeReady(a)
	}
	if len(s.waiting) > 0 && !s.waiting[0].due.Equal(s.timerDue) {
		s.timerDue = s.waiting[0].due
		s.timer.Reset(s.timerDue.Sub(now))
	}
}

func (s *session) makeReady(a *aggregate) {
	a.status = ready
	s.ready = append(s.ready, a)
}

// dispatch keeps the workers busy.
func (s *session) dispatch() {
	for s.busy < s.workers && len(s.ready) > 0 {
		a := s.ready[0]
		s.ready[0] = nil
		s.ready = s.ready[1:]
		if s.left == 0 {
			s.busy++
			s.launch(a)
			continue
		}
		s.announce(a)
	}
}

// announce has a publish begin when the next commit has said so.
func (s *session) announce(a *aggregate) {
	e := a.queue[0]
	if e.suspect {
		if s.suspect != nil {
			s.aside = append(s.aside, a)
			return
		}
		s.suspect = a
	}
	s.busy++
	a.status = flying
	s.listed[e.Number] = struct{}{}
	s.listChanged = true
	s.next.announced = append(s.next.announced, a)
	if s.left--; s.left == 0 {
		s.ready, s.aside = append(s.ready, s.aside...), nil
	}
}

// unlist ends what announce has begun.
func (s *session) unlist(a *aggregate) {
	s.busy--
	number := a.queue[0].Number
	if _, listed := s.listed[number]; listed {
		delete(s.listed, number)
		s.listChanged = true
	}
	if s.suspect == a {
		s.suspect = nil
		s.ready, s.aside = append(s.ready, s.aside...), nil
	}
}

func (s *session) launch(a *aggregate) {
	a.status = flying
	e := a.queue[0]
	go s.call(result{of: a, event: e.Event, failure: "the publisher ended its goroutine"}, e.Number)
}

// call runs the publisher, however it ends. An event that was not kept during the
// back-off is read again.
func (s *session) call(res result, number uint64) {
	defer func() {
		if v := recover(); v != nil {
			res.failure, res.unavailable = cutText(fmt.Sprintf("panic: %v", v)), false
		}
		s.results <- res
	}()
	if res.event.ID == "" {
		entries, _, err := s.outbox.read(context.WithoutCancel(s.publishing), stretch{number, number}, 1, 1)
		switch {
		case err != nil:
			res.storeErr = err
			return
		case len(entries) == 0:
			res.failure = "" // somebody has removed it
			return
		}
		res.event = entries[0].Event
	}
	err := s.publish(s.publishing, res.event)
	if err == nil {
		res.failure = ""
		return
	}
	var away *unavailableError // its methods are the publisher's too: they may panic
	res.unavailable = errors.As(err, &away)
	res.failure = cutText(err.Error())
}

// end deals with a publish that has ended.
func (s *session) end(res result) error {
	a := res.of
	s.unlist(a)
	switch {
	case res.storeErr != nil:
		return res.storeErr
	case res.failure == "":
		s.endPublished(a)
	case s.publishing.Err() != nil:
		a.status = idle // it was told to give up
	case res.unavailable:
		s.wait(a, a.outages)
		a.outages++
	default:
		s.endFailed(a, &res)
	}
	return nil
}

func (s *session) endPublished(a *aggregate) {
	e := a.pop()
	a.bytes -= e.size
	s.heldBytes -= e.size
	a.unmarked++
	a.outages = 0
	s.next.done = append(s.next.done, done{a, e.Number, e.Attempts > 0})
	s.goOn(a)
}

func (s *session) endFailed(a *aggregate, res *result) {
	e := a.queue[0]
	s.countFailure(e, res.failure)
	if s.isPoison(e) {
		a.status = parking
		whole := *e
		whole.Event = res.event
		s.next.parked = append(s.next.parked, parked{a, whole})
		return
	}
	e.suspect = false
	s.next.notes[e.Number] = attemptNote{Count: e.Attempts, Error: e.LastError}
	s.wait(a, e.Attempts-1)
}

func (s *session) countFailure(e *Entry, failure string) {
	e.Attempts++
	e.LastError = failure
	s.next.failed++
}

// isPoison reports whether an event has failed often enough.
func (s *session) isPoison(e *Entry) bool { return s.maxAttempts > 0 && e.Attempts >= s.maxAttempts }

// wait lets the aggregate's first event be tried again later.
func (s *session) wait(a *aggregate, failures int) {
	a.status = waiting
	a.due = time.Now().Add(s.backoff(failures))
	heap.Push(&s.waiting, a)
	if s.scarce() {
		s.strip(a)
	} else {
		s.keeping = true
	}
}

// strip keeps nothing of an aggregate that waits but where it stands.
func (s *session) strip(a *aggregate) {
	if len(a.queue) > 1 {
		s.fallBehind(a, a.queue[1].Number)
	}
	s.held -= len(a.queue)
	s.heldBytes -= a.bytes
	first := a.queue[0]
	first.size, first.Event = 0, Event{}
	a.bytes, a.queue, a.bare = 0, []*Entry{first}, true
}

// backoff doubles with each failure, less a random part, so that what failed
// together is not tried again together.
func (s *session) backoff(failures int) time.Duration {
	d := s.maxBackoff
	if failures < 62 && s.minBackoff < d>>failures {
		d = s.minBackoff << failures
	}
	return d - rand.N(d/2+1)
}

// goOn is called when the aggregate's first event is out of its way.
func (s *session) goOn(a *aggregate) {
	if len(a.queue) > 0 {
		s.makeReady(a)
	} else {
		a.status = idle
	}
	if a.behind != 0 && len(a.queue) < s.share()/2 {
		s.wanted = true
	}
}

// cutText keeps an error's text to its limit, at a rune boundary, and makes it
// UTF-8, as JSON would. It is never empty.
func cutText(text string) string {
	if len(text) > maxErrorBytes {
		text = text[:maxErrorBytes]
	}
	if text = strings.ToValidUTF8(text, ""); text == "" {
		return "an error without a text"
	}
	return text
}
