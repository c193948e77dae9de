package idem

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Counters is a snapshot of what a guard has seen since it was made.
type Counters struct {
	Executed, Replayed, InProgress, Mismatch, Interrupted      uint64
	Released, Failed, Expired, LeaseLost, Rejected, StoreError uint64
	Unprotected                                                uint64
	// RejectedBy splits Rejected by reason.
	RejectedBy map[RejectReason]uint64
	// Suspects are the keys that came with the most different contents, worst
	// first, at most ten: a client that sends one key for everything shows here.
	Suspects []Suspect
}

// Suspect is a key that came with other content than it was first used with.
type Suspect struct {
	Key        Key
	Mismatches uint64
	// Distinct estimates how many different contents came; exact for a few,
	// saturating at about 260.
	Distinct int
}

// HitRate is the share of calls answered from a record among all calls that
// were answered from a record or ran the function, from 0 to 1. It is 0 before
// the first such call.
func (c Counters) HitRate() float64 {
	ran := c.Executed + c.Failed + c.Released
	if c.Replayed+ran == 0 {
		return 0
	}
	return float64(c.Replayed) / float64(c.Replayed+ran)
}

// suspectsTracked bounds the memory spent on keys with mismatches.
const suspectsTracked = 256

type counters struct {
	byKind [eventKinds + 1]atomic.Uint64

	mu       sync.Mutex
	rejected map[RejectReason]uint64
	suspects *lru.Cache[Key, mismatches]
}

func newCounters() *counters {
	suspects, err := lru.New[Key, mismatches](suspectsTracked)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &counters{rejected: make(map[RejectReason]uint64), suspects: suspects}
}

func (c *counters) add(e Event) {
	n := uint64(1)
	if e.Kind == EventExpired {
		n = uint64(e.Count)
	}
	c.byKind[e.Kind].Add(n)
	switch e.Kind {
	case EventRejected:
		c.mu.Lock()
		c.rejected[e.Reason]++
		c.mu.Unlock()
	case EventMismatch:
		c.mu.Lock()
		m, _ := c.suspects.Get(e.Key)
		m.add(e.Fingerprint)
		c.suspects.Add(e.Key, m)
		c.mu.Unlock()
	}
}

func (c *counters) snapshot() Counters {
	get := func(k EventKind) uint64 { return c.byKind[k].Load() }
	s := Counters{
		Executed: get(EventExecuted), Replayed: get(EventReplayed), InProgress: get(EventInProgress),
		Mismatch: get(EventMismatch), Interrupted: get(EventInterrupted), Released: get(EventReleased),
		Failed: get(EventFailed), Expired: get(EventExpired), LeaseLost: get(EventLeaseLost),
		Rejected: get(EventRejected), StoreError: get(EventStoreError),
		Unprotected: get(EventUnprotected),
		RejectedBy:  make(map[RejectReason]uint64),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for reason, n := range c.rejected {
		s.RejectedBy[reason] = n
	}
	for _, key := range c.suspects.Keys() {
		if m, ok := c.suspects.Peek(key); ok {
			s.Suspects = append(s.Suspects, Suspect{Key: key, Mismatches: m.count, Distinct: m.distinct()})
		}
	}
	slices.SortFunc(s.Suspects, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(b.Distinct, a.Distinct), cmp.Compare(b.Mismatches, a.Mismatches),
			cmp.Compare(a.Key.String(), b.Key.String()))
	})
	s.Suspects = s.Suspects[:min(len(s.Suspects), 10)]
	return s
}

// mismatches counts the calls that came with other content and estimates how
// many contents there were by linear counting in one word: 16 bytes a key, and
// no fingerprint is kept.
type mismatches struct {
	count uint64
	seen  uint64
}

func (m *mismatches) add(fp Fingerprint) {
	m.count++
	m.seen |= 1 << (fp.digest() % 64)
}

func (m *mismatches) distinct() int {
	zeros := 64 - bits.OnesCount64(m.seen)
	estimate := -64 * math.Log(math.Max(float64(zeros), 1)/64)
	return int(math.Min(math.Round(estimate), float64(m.count)))
}
