package idem

import (
	"hash/maphash"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	cacheStripes = 256
	absentSlots  = 4096
	// cacheOverhead is roughly what an entry costs beside its strings and value.
	cacheOverhead = 512
	// largestCached is the size of the largest record that is kept.
	largestCached = 128 << 10
)

// cache holds finished records in front of bbolt, bounded by bytes. It is
// filled after the commit, never before, so it can lack a record but not hold
// one that is not durable. A nil cache holds nothing.
//
// A reader that fills it races with a writer that replaces the record it read.
// Stripes settle that: the reader remembers the stripe's count before it reads,
// and what it read is not kept if a write has raised the count since or is under
// way. During a commit the key is not in the cache at all: else one reader could
// see the new record on disk and the next one the old record here.
//
// By the same rule it remembers some keys that were found to hold nothing, for
// the claim that follows such a read. They have a small table of their own, so
// that looking for keys that do not exist drives nothing out.
type cache struct {
	max  int64
	seed maphash.Seed

	mu      sync.Mutex
	lru     *simplelru.LRU[Key, *Record]
	bytes   int64
	stripes [cacheStripes]cacheStripe
	absent  [absentSlots]Key
}

type cacheStripe struct {
	writes  uint32 // that have ended
	writing int    // that are under way
}

// newCache returns a cache of at most max bytes, or nil if max is not positive.
func newCache(max int64) *cache {
	if max <= 0 {
		return nil
	}
	c := &cache{max: max, seed: maphash.MakeSeed()}
	// The count is no bound of its own: max bytes are reached long before.
	lru, err := simplelru.NewLRU(int(max/cacheOverhead)+1, func(_ Key, r *Record) { c.bytes -= cacheCost(r) })
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	c.lru = lru
	return c
}

func cacheCost(r *Record) int64 {
	return int64(cacheOverhead + len(r.Value) + len(r.Key.Scope) + len(r.Key.ID) + len(r.Owner) + len(r.Error) +
		len(r.Note) + 48*len(r.Fingerprint.parts))
}

func (c *cache) stripe(key Key) *cacheStripe {
	return &c.stripes[maphash.Comparable(c.seed, key)%cacheStripes]
}

func (c *cache) absentSlot(key Key) *Key {
	return &c.absent[maphash.Comparable(c.seed, key)%absentSlots]
}

// fillAbsent remembers a key that was found to hold nothing, as fill does.
func (c *cache) fillAbsent(mark uint32, key Key) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.stripe(key); s.writes == mark && s.writing == 0 {
		*c.absentSlot(key) = key
	}
}

// isAbsent reports whether a key is known to hold nothing.
func (c *cache) isAbsent(key Key) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.absentSlot(key) == key
}

// get returns the cached record. The caller must not change it.
func (c *cache) get(key Key) (*Record, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Get(key)
}

// mark is what a reader passes to fill, taken before it reads.
func (c *cache) mark(key Key) uint32 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stripe(key).writes
}

// fill keeps a copy of a record that was read, unless its key may have been
// written since mark.
func (c *cache) fill(mark uint32, rec *Record) {
	if c == nil || !cacheable(rec) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.stripe(rec.Key); s.writes == mark && s.writing == 0 {
		c.add(rec)
	}
}

// write tells the cache that a write of the key begins. wrote must follow.
func (c *cache) write(key Key) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stripe(key).writing++
	c.lru.Remove(key)
	if slot := c.absentSlot(key); *slot == key {
		*slot = Key{}
	}
}

// wrote tells the cache that the write of the key has ended: rec is its new,
// durable record, or nil if it was deleted or the write failed.
func (c *cache) wrote(key Key, rec *Record) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stripe(key)
	s.writes++
	s.writing--
	if rec != nil && cacheable(rec) {
		c.add(rec)
	}
}

func (c *cache) add(rec *Record) {
	if cacheCost(rec) > min(c.max/4, largestCached) {
		return // it would drive many others out, and saves less beside the time it takes to copy
	}
	kept := rec.clone()
	c.lru.Remove(rec.Key) // so that its bytes are counted once
	c.lru.Add(rec.Key, &kept)
	c.bytes += cacheCost(rec)
	for c.bytes > c.max {
		c.lru.RemoveOldest()
	}
}

// cacheable: only records that no attempt will change.
func cacheable(rec *Record) bool { return rec.State == Completed || rec.State == Failed }
