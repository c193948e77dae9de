package idem

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	_ Store        = (*MemoryStore)(nil)
	_ Waiter       = (*MemoryStore)(nil)
	_ Clock        = (*MemoryStore)(nil)
	_ SecretKeeper = (*MemoryStore)(nil)
)

// MemoryStore keeps records in memory. It forgets them when the process ends,
// so it protects against double clicks and concurrent duplicates, not against a
// retry after a restart. It is safe for concurrent use.
type MemoryStore struct {
	config MemoryConfig
	clock  *storeClock
	secret []byte
	watch  watchers

	mu      sync.Mutex
	records map[Key]Record
	order   expiryHeap
	bytes   int64
	version uint64
	closed  bool
}

// MemoryConfig configures a MemoryStore. The zero value sets no limits.
type MemoryConfig struct {
	// MaxRecords refuses new keys with ErrFull from this number of records on.
	// 0 means no limit.
	MaxRecords int64
	// MaxBytes refuses new keys with ErrFull when values take this many bytes.
	// 0 means no limit.
	MaxBytes int64
}

// NewMemoryStore returns an empty store.
func NewMemoryStore(c MemoryConfig) *MemoryStore {
	return &MemoryStore{
		config:  c,
		clock:   newStoreClock(time.Now(), storeState{}, 0, false),
		secret:  []byte(randomHex(16)),
		records: make(map[Key]Record),
	}
}

// Close makes every later call return ErrClosed and frees the records.
func (s *MemoryStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.records, s.order = nil, nil
	return nil
}

// Now returns the store's time. See Clock.
func (s *MemoryStore) Now() time.Time { return s.clock.Now() }

// Secret returns the secret of this store. See SecretKeeper.
func (s *MemoryStore) Secret() []byte { return bytes.Clone(s.secret) }

// Watch signals the next change of key. See Waiter.
func (s *MemoryStore) Watch(key Key) (<-chan struct{}, func()) { return s.watch.watch(key) }

// lock enters a method: it refuses ended contexts and a closed store.
func (s *MemoryStore) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	return nil
}

// live returns the record of key unless it has expired. The caller holds mu.
func (s *MemoryStore) live(key Key) (Record, bool) {
	rec, ok := s.records[key]
	if !ok || rec.Expired(s.clock.Now()) {
		return Record{}, false
	}
	return rec, true
}

// Create implements Store.
func (s *MemoryStore) Create(ctx context.Context, rec Record) (Record, error) {
	if err := rec.Validate(); err != nil {
		return Record{}, err
	}
	if err := s.lock(ctx); err != nil {
		return Record{}, err
	}
	defer s.mu.Unlock()
	if current, ok := s.live(rec.Key); ok {
		return current.clone(), ErrConflict
	}
	if err := s.full(); err != nil {
		return Record{}, err
	}
	return s.put(rec), nil
}

// Swap implements Store.
func (s *MemoryStore) Swap(ctx context.Context, version uint64, rec Record) (Record, error) {
	if err := rec.Validate(); err != nil {
		return Record{}, err
	}
	if err := s.lock(ctx); err != nil {
		return Record{}, err
	}
	defer s.mu.Unlock()
	current, ok := s.live(rec.Key)
	if !ok || current.Version != version {
		return current.clone(), ErrConflict
	}
	return s.put(rec), nil
}

// Delete implements Store.
func (s *MemoryStore) Delete(ctx context.Context, key Key, version uint64) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	current, ok := s.live(key)
	switch {
	case !ok:
		return ErrNotFound
	case current.Version != version:
		return ErrConflict
	}
	s.drop(key)
	return nil
}

// Get implements Store.
func (s *MemoryStore) Get(ctx context.Context, key Key) (Record, error) {
	if err := key.Validate(); err != nil {
		return Record{}, err
	}
	if err := s.lock(ctx); err != nil {
		return Record{}, err
	}
	defer s.mu.Unlock()
	rec, ok := s.live(key)
	if !ok {
		return Record{}, ErrNotFound
	}
	return rec.clone(), nil
}

// Scan implements Store. It holds the store only while it lists the keys and
// while it reads each record.
func (s *MemoryStore) Scan(ctx context.Context, q Query) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		keys, err := s.keys(ctx, q)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for _, key := range keys {
			if err := s.lock(ctx); err != nil {
				yield(Record{}, err)
				return
			}
			rec, ok := s.records[key]
			ok = ok && (q.Expired || !rec.Expired(s.clock.Now()))
			if q.OmitValues {
				rec.Value = nil
			}
			rec = rec.clone()
			s.mu.Unlock()
			if ok && !yield(rec, nil) {
				return
			}
		}
	}
}

func (s *MemoryStore) keys(ctx context.Context, q Query) ([]Key, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var keys []Key
	for key := range s.records {
		if text := key.String(); strings.HasPrefix(text, q.Prefix) && text > q.After {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.String(), b.String()) })
	return keys, nil
}

// Expire implements Store.
func (s *MemoryStore) Expire(ctx context.Context, limit int) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	now, removed := s.clock.Now(), 0
	for removed < limit && len(s.order) > 0 && !now.Before(s.order[0].at) {
		due := heap.Pop(&s.order).(expiry)
		rec, ok := s.records[due.key]
		switch {
		case !ok || rec.Version != due.version: // an entry of an older version
		case rec.Expired(now):
			s.drop(due.key)
			removed++
		default: // its lease still runs: look again when that is over
			heap.Push(&s.order, expiry{rec.LeaseUntil, rec.Key, rec.Version})
		}
	}
	return removed, nil
}

func (s *MemoryStore) full() error {
	if n := int64(len(s.records)); s.config.MaxRecords > 0 && n >= s.config.MaxRecords {
		return fmt.Errorf("%w: it holds %d records, the limit is %d", ErrFull, n, s.config.MaxRecords)
	}
	if s.config.MaxBytes > 0 && s.bytes >= s.config.MaxBytes {
		return fmt.Errorf("%w: values take %d bytes, the limit is %d", ErrFull, s.bytes, s.config.MaxBytes)
	}
	return nil
}

// put stores rec under the next version. The caller holds mu.
func (s *MemoryStore) put(rec Record) Record {
	s.version++
	rec.Version = s.version
	rec.Replays, rec.LastReplayAt, rec.Mismatches, rec.DistinctMismatches = 0, time.Time{}, 0, 0
	rec.Size = len(rec.Value)
	s.bytes += int64(len(rec.Value) - len(s.records[rec.Key].Value))
	s.records[rec.Key] = rec.clone()
	heap.Push(&s.order, expiry{rec.ExpiresAt, rec.Key, rec.Version})
	s.watch.notify(rec.Key)
	return rec
}

// drop removes the record of key. The caller holds mu.
func (s *MemoryStore) drop(key Key) {
	s.bytes -= int64(len(s.records[key].Value))
	delete(s.records, key)
	s.watch.notify(key)
}

// clone returns the record with its own copy of the value.
func (r Record) clone() Record {
	r.Value = bytes.Clone(r.Value)
	r.Steps = slices.Clone(r.Steps)
	for i := range r.Steps {
		r.Steps[i].Value = bytes.Clone(r.Steps[i].Value)
	}
	return r
}

// expiry is one entry of the expiry order. Entries of older versions are left
// in place and skipped when they come up.
type expiry struct {
	at      time.Time
	key     Key
	version uint64
}

type expiryHeap []expiry

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h expiryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *expiryHeap) Push(x any)        { *h = append(*h, x.(expiry)) }
func (h *expiryHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
