package outbox

import (
	"context"
	"math"
)

// window is what has been read of the bucket.
//
// Every event up to the frontier belongs to an aggregate that is known, or was
// published and removed. Beyond it nothing was read. An aggregate that has its
// share of the window, or is in back-off while the window is scarce, falls behind:
// its further events are passed over, and only the number of the first is kept.
// When it has room again, a pass goes from there to the frontier and loads what
// belongs to those who are behind.
type window struct {
	held      int // events loaded or published and not yet removed, without those that wait
	heldBytes int // of those not yet published

	frontier uint64
	atEnd    bool // nothing was beyond the frontier
	changes  int  // of the bucket
	changed  <-chan struct{}
	unwatch  func()

	behind   map[*aggregate]struct{}
	wanted   bool // one of them may have room
	passing  bool
	pass     uint64 // number of the pass
	position uint64 // of it: the next number
	passed   bool   // the last read was of a pass

	reading bool
	chunks  chan chunk

	keeping bool // of some that wait more is kept than where they stand
}

func (w *window) init() {
	w.behind = make(map[*aggregate]struct{})
	w.chunks = make(chan chunk, 1)
}

// chunk is what was read of a stretch.
type chunk struct {
	stretch
	pass    bool
	changes int // that were known before
	entries []Entry
	all     bool
	err     error
}

func (s *session) full() bool {
	return s.held >= s.limits.windowEvents || s.heldBytes >= s.limits.windowBytes || len(s.waiting) >= s.limits.waiting
}

// share is how many loaded events one aggregate may have: publishers that hang,
// even all but one, must not fill the window.
func (s *session) share() int { return max(s.limits.windowEvents/(2*s.workers), 2) }

func (s *session) room(a *aggregate) bool {
	return !a.bare && (len(a.queue) == 0 || len(a.queue) < s.share() && a.bytes < s.limits.windowBytes/(2*s.workers))
}

// scarce reports whether the window must be kept for those who can go on.
func (s *session) scarce() bool {
	return s.held > s.limits.windowEvents/2 || s.heldBytes > s.limits.windowBytes/2
}

// startRead reads on, if there is room and need. Passes and the frontier take
// turns, so that neither keeps the other from getting on.
func (s *session) startRead() {
	if s.keeping && s.scarce() {
		s.keeping = false
		for _, a := range s.waiting {
			if !a.bare {
				s.strip(a)
			}
		}
	}
	if s.reading || s.full() || s.scarce() && len(s.ready) > 0 {
		return
	}
	c := chunk{changes: s.changes}
	ahead := !s.atEnd
	switch pass := s.inPass(); {
	case pass && !(ahead && s.passed):
		c.pass, c.stretch = true, stretch{s.position, s.frontier}
	case ahead && s.frontier < math.MaxUint64:
		c.stretch = stretch{s.frontier + 1, math.MaxUint64}
	default:
		return
	}
	s.reading, s.passed = true, c.pass
	ctx := context.WithoutCancel(s.publishing)
	go func() {
		c.entries, c.all, c.err = s.outbox.read(ctx, c.stretch, s.limits.readEvents, s.limits.readBytes)
		s.chunks <- c
	}()
}

// inPass reports whether there is a pass to go on with, and begins one if somebody
// needs it.
func (s *session) inPass() bool {
	if s.passing {
		for a := range s.behind {
			if s.follows(a, s.position) && s.room(a) {
				return true
			}
		}
		s.passing = false
	}
	if !s.wanted {
		return false
	}
	s.position = math.MaxUint64
	for a := range s.behind {
		if a.status != waiting && s.room(a) && len(a.queue) < s.share()/2 {
			s.passing = true
			s.position = min(s.position, a.behind)
		}
	}
	s.wanted = s.passing
	s.pass++
	return s.passing
}

// follows reports whether the pass has left out nothing of the aggregate that is
// before a position of it.
func (s *session) follows(a *aggregate, position uint64) bool {
	return a.behind >= position && a.missed != s.pass
}

// take puts what was read where it belongs.
func (s *session) take(c chunk) error {
	s.reading = false
	if c.err != nil {
		return c.err
	}
	if c.pass {
		s.takePass(&c)
		return nil
	}
	for i := range c.entries {
		if s.full() {
			return nil
		}
		s.place(&c.entries[i])
		s.frontier = c.entries[i].Number
	}
	s.atEnd = c.all && c.changes == s.changes
	return nil
}

// place puts an event from beyond the frontier to its aggregate.
func (s *session) place(e *Entry) {
	if e.Err != nil {
		s.placeUndecodable(e)
		return
	}
	name := aggregateName{e.Event.AggregateType, e.Event.AggregateID}
	a := s.aggregates[name]
	if a == nil {
		a = &aggregate{name: name}
		s.aggregates[name] = a
	}
	switch {
	case a.behind != 0:
	case s.room(a):
		s.load(a, e)
	default:
		s.fallBehind(a, e.Number)
	}
}

// placeUndecodable parks what cannot be published. Nobody knows whose it is, so it
// holds back nobody.
func (s *session) placeUndecodable(e *Entry) {
	e.Event, e.LastError = undecodable(e), cutText(e.Err.Error())
	a := &aggregate{name: aggregateName{id: e.Event.ID}, status: parking} // no event has a type without a name
	s.aggregates[a.name] = a
	a.queue, a.bytes = []*Entry{e}, e.size
	s.held++
	s.heldBytes += e.size
	s.next.parked = append(s.next.parked, parked{a, *e})
}

func (s *session) load(a *aggregate, e *Entry) {
	own := *e // the others that were read with it are not kept for it
	a.queue = append(a.queue, &own)
	a.bytes += e.size
	s.held++
	s.heldBytes += e.size
	if a.status == idle {
		s.makeReady(a)
	}
}

func (s *session) fallBehind(a *aggregate, number uint64) {
	if a.behind == 0 || number < a.behind {
		a.behind = number
	}
	s.behind[a] = struct{}{}
}

// takePass loads what a pass has read.
func (s *session) takePass(c *chunk) {
	end := c.to + 1
	if n := len(c.entries); n > 0 && !c.all {
		end = c.entries[n-1].Number + 1
	}
	for i := range c.entries {
		e := &c.entries[i]
		if s.full() {
			end = e.Number
			break
		}
		a := s.aggregates[aggregateName{e.Event.AggregateType, e.Event.AggregateID}]
		if a == nil || a.behind == 0 || e.Number < a.behind || !s.follows(a, c.from) {
			continue // published since it was read, loaded before, or left out
		}
		if !s.room(a) {
			a.behind, a.missed = e.Number, s.pass
			continue
		}
		s.load(a, e)
		a.behind = e.Number + 1
	}
	s.advance(c.from, end)
}

// advance takes the pass from one number to another, with all that follow it.
func (s *session) advance(from, end uint64) {
	s.position = end
	if end > s.frontier {
		s.passing = false
	}
	for a := range s.behind {
		if !s.follows(a, from) || a.behind > end {
			continue
		}
		if a.behind = end; end > s.frontier {
			a.behind = 0
			delete(s.behind, a)
			s.forget(a)
		}
	}
}

// forget drops an aggregate of which there is nothing left in the file.
func (s *session) forget(a *aggregate) {
	if a.status == idle && a.queue == nil && a.unmarked == 0 && a.behind == 0 {
		delete(s.aggregates, a.name)
	}
}
