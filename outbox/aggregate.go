package outbox

import (
	"container/heap"
	"time"
)

type aggregateName struct{ kind, id string }

// aggregate is one that has events in the window, is behind, or has published
// events that are not yet removed from the file. All fields belong to the loop of
// the session.
type aggregate struct {
	name   aggregateName
	status status
	queue  []*Entry // that are loaded, in order; the first is in flight, waits, or is next
	bytes  int      // of these, in the file

	// behind is the number from which on events of this aggregate may be in the
	// file that were not loaded, because it had its share of the window. 0: there
	// are none up to the frontier.
	behind uint64
	missed uint64 // the pass that went by when there was no room

	unmarked int // published, and not yet removed from the file

	outages int // unavailable in a row
	due     time.Time
	bare    bool // it waits, and nothing of it is kept but where it stands
}

// status says who will touch the aggregate next.
type status int

const (
	idle    status = iota // nobody: nothing is loaded
	ready                 // dispatch
	flying                // the publisher, or the announcement of it
	waiting               // the timer
	parking               // the commit that parks its first event
)

func (a *aggregate) pop() *Entry {
	e := a.queue[0]
	a.queue[0] = nil
	a.queue = a.queue[1:]
	if len(a.queue) == 0 {
		a.queue = nil
	}
	return e
}

// waitHeap has the aggregate first whose back-off ends first.
type waitHeap []*aggregate

var _ heap.Interface = (*waitHeap)(nil)

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h waitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *waitHeap) Push(x any) { *h = append(*h, x.(*aggregate)) }

// Pop is for package heap.
func (h *waitHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
