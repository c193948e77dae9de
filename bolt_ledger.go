package idem

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	// ledgerKeys bounds the keys whose notes wait for a commit; the notes of
	// further keys are dropped.
	ledgerKeys = 4096
	// ledgerInterval is how often notes may ride along with a commit: each note
	// dirties a page of its own.
	ledgerInterval = time.Second
	historyHours   = 14 * 24
)

// ledger collects what happened until a commit that is made anyway takes it
// along. It never causes a sync of its own, so a crash loses the latest counts.
type ledger struct {
	mu        sync.Mutex
	notes     map[Key]note
	hours     map[int64]hourCounts // by hours since 1970
	lastTaken time.Time
}

// note is what is kept beside a record. It is dropped with it.
type note struct {
	replays    uint64
	lastReplay int64 // microseconds
	mismatches mismatches
}

// hourCounts are counts of one hour by event name, and by "rejected:" + reason.
type hourCounts map[string]uint64

// ledgerBatch is the part of the ledger that one commit makes durable.
type ledgerBatch struct {
	notes map[Key]note
	hours map[int64]hourCounts
}

func (l *ledger) record(e Event, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hour := now.Unix() / 3600
	counts := l.hours[hour]
	if counts == nil {
		if l.hours == nil {
			l.hours = make(map[int64]hourCounts)
		}
		counts = make(hourCounts)
		l.hours[hour] = counts
	}
	counts[e.Kind.String()] += max(uint64(e.Count), 1)
	if e.Kind == EventRejected {
		counts["rejected:"+string(e.Reason)]++
	}
	if e.Kind != EventReplayed && e.Kind != EventMismatch {
		return
	}
	n, known := l.notes[e.Key]
	if !known && len(l.notes) >= ledgerKeys {
		return
	}
	if e.Kind == EventReplayed {
		n.replays++
		n.lastReplay = toMicros(now)
	} else {
		n.mismatches.add(e.Fingerprint)
	}
	if l.notes == nil {
		l.notes = make(map[Key]note)
	}
	l.notes[e.Key] = n
}

// take hands over what has gathered, or nothing if the last time was too
// recent, unless all is asked for.
func (l *ledger) take(all bool) ledgerBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.hours) == 0 || !all && time.Since(l.lastTaken) < ledgerInterval {
		return ledgerBatch{}
	}
	taken := ledgerBatch{notes: l.notes, hours: l.hours}
	l.notes, l.hours, l.lastTaken = nil, nil, time.Now()
	return taken
}

// merge adds what another ledger has gathered. l must be new.
func (l *ledger) merge(b ledgerBatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes, l.hours = b.notes, b.hours
}

func (l *ledger) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.hours) == 0
}

// forget drops the notes of a removed record.
func (l *ledger) forget(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.notes, key)
}

// add adds a later batch.
func (b *ledgerBatch) add(later ledgerBatch) {
	if b.empty() {
		*b = ledgerBatch{notes: maps.Clone(later.notes), hours: maps.Clone(later.hours)}
		return
	}
	for key, n := range later.notes {
		if b.notes == nil {
			b.notes = make(map[Key]note)
		}
		b.notes[key] = b.notes[key].plus(n)
	}
	for hour, counts := range later.hours {
		if b.hours == nil {
			b.hours = make(map[int64]hourCounts)
		}
		b.hours[hour] = b.hours[hour].plus(counts)
	}
}

func (n note) plus(later note) note {
	return note{
		replays:    n.replays + later.replays,
		lastReplay: max(n.lastReplay, later.lastReplay),
		mismatches: mismatches{n.mismatches.count + later.mismatches.count, n.mismatches.seen | later.mismatches.seen},
	}
}

func (c hourCounts) plus(later hourCounts) hourCounts {
	sum := maps.Clone(c)
	if sum == nil {
		sum = make(hourCounts, len(later))
	}
	for name, n := range later {
		sum[name] += n
	}
	return sum
}

func (b ledgerBatch) empty() bool { return len(b.notes)+len(b.hours) == 0 }

// apply adds the batch to what is stored. Notes of records that are gone are
// dropped.
func (b ledgerBatch) apply(tx *bolt.Tx) error {
	records, notes := tx.Bucket(bucketRecords), tx.Bucket(bucketNotes)
	for key, n := range b.notes {
		k := []byte(key.String())
		if records.Get(k) == nil {
			continue
		}
		old, _ := decodeNote(notes.Get(k)) // counts are best effort: damaged ones begin anew
		if err := notes.Put(k, old.plus(n).encode()); err != nil {
			return err
		}
	}
	return b.applyHours(tx.Bucket(bucketHistory))
}

func (b ledgerBatch) applyHours(history *bolt.Bucket) error {
	for hour, counts := range b.hours {
		k := binary.BigEndian.AppendUint64(nil, uint64(hour))
		sum := make(hourCounts)
		if stored := history.Get(k); stored != nil {
			if err := json.Unmarshal(stored, &sum); err != nil || sum == nil {
				sum = make(hourCounts) // best effort: damaged counts begin anew
			}
		}
		enc, err := json.Marshal(sum.plus(counts))
		if err != nil {
			return err
		}
		if err := history.Put(k, enc); err != nil {
			return err
		}
		if err := dropOldHours(history, hour-historyHours); err != nil {
			return err
		}
	}
	return nil
}

func dropOldHours(history *bolt.Bucket, before int64) error {
	c := history.Cursor()
	for k, _ := c.First(); len(k) == 8 && int64(binary.BigEndian.Uint64(k)) < before; k, _ = c.First() {
		if err := history.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func (n note) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 32), n.replays)
	b = binary.BigEndian.AppendUint64(b, uint64(n.lastReplay))
	b = binary.BigEndian.AppendUint64(b, n.mismatches.count)
	return binary.BigEndian.AppendUint64(b, n.mismatches.seen)
}

func decodeNote(b []byte) (note, error) {
	switch len(b) {
	case 0:
		return note{}, nil
	case 32:
		return note{
			replays: binary.BigEndian.Uint64(b), lastReplay: int64(binary.BigEndian.Uint64(b[8:])),
			mismatches: mismatches{count: binary.BigEndian.Uint64(b[16:]), seen: binary.BigEndian.Uint64(b[24:])},
		}, nil
	}
	return note{}, fmt.Errorf("%w: a note has %d bytes, not 32", ErrCorrupt, len(b))
}

// fill copies the note into the record it belongs to.
func (n note) fill(r *Record) {
	r.Replays, r.LastReplayAt = n.replays, fromMicros(n.lastReplay)
	r.Mismatches, r.DistinctMismatches = n.mismatches.count, n.mismatches.distinct()
}
