package idem

import (
	"math"
	"sync"
	"sync/atomic"
)

// heldVersion is the version of a record that is only in memory: no other record
// has it.
const heldVersion = math.MaxUint64

// holds are the keys of the transactions under way. To everybody else such a key
// is in progress, though nothing is on disk: a crash leaves nothing behind.
type holds struct {
	count atomic.Int64
	mu    sync.Mutex
	keys  map[Key]*heldKey
}

type heldKey struct {
	over uint64 // version of the record that the key had; 0 if it had none
	rec  Record
}

// take holds the key of rec over a version of its record, or returns the record of
// who holds it.
func (h *holds) take(rec Record, over uint64) (Record, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other := h.keys[rec.Key]; other != nil {
		return other.rec.clone(), false
	}
	if h.keys == nil {
		h.keys = make(map[Key]*heldKey)
	}
	held := rec.clone()
	held.Version, held.LeaseUntil = heldVersion, rec.StartedAt.AddDate(100, 0, 0) // it needs no sign of life: its owner is this process
	h.keys[rec.Key] = &heldKey{over, held}
	h.count.Add(1)
	return rec, true
}

func (h *holds) release(key Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.keys, key)
	h.count.Add(-1)
}

// covering returns a copy of the record of who holds the key over this version of
// its record. Over another one, which was claimed before the key was held, nobody
// does: the transaction will find it when it commits.
func (h *holds) covering(key Key, version uint64) (Record, bool) {
	if h.count.Load() == 0 {
		return Record{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.keys[key]
	if held == nil || held.over != version {
		return Record{}, false
	}
	return held.rec.clone(), true
}
