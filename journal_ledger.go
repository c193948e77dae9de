package idem

import (
	"encoding/json"
	"maps"
	"slices"
)

// annotate adds the notes that are not yet merged. One that is merged while it
// looks may count twice: a moment later it does not.
func (e *journalEngine) annotate(keys []string, fn func(i int, enc []byte) error) error {
	over := make([]noteOver, len(keys))
	e.mu.RLock()
	for i, key := range keys {
		over[i] = e.noteOver(key)
	}
	e.mu.RUnlock()
	return e.file.annotate(keys, func(i int, enc []byte) error {
		if over[i].alone {
			enc = nil
		}
		if stored, err := decodeNote(enc); err == nil && over[i].note != (note{}) {
			enc = stored.plus(over[i].note).encode()
		}
		return fn(i, enc)
	})
}

// noteOver is what the overlays know of one key's note.
type noteOver struct {
	note  note
	alone bool // what the file has belongs to an earlier record
}

// noteOver sums up the notes of both overlays. The caller holds mu.
func (e *journalEngine) noteOver(key string) noteOver {
	var over noteOver
	for _, o := range []*overlay{e.frozen, e.active} {
		if o == nil {
			continue
		}
		if entry := o.entries[key]; entry.fresh && !entry.inFile {
			over = noteOver{alone: true}
		}
		if len(o.ledger.notes) == 0 {
			continue
		}
		if k, err := ParseKey(key); err == nil {
			over.note = over.note.plus(o.ledger.notes[k])
		}
	}
	return over
}

// history adds the counts that are not yet merged.
func (e *journalEngine) history(fn func(hour int64, enc []byte) error) error {
	over := e.hoursOver()
	err := e.file.history(func(hour int64, enc []byte) error {
		counts, ok := over[hour]
		if !ok {
			return fn(hour, enc)
		}
		delete(over, hour)
		stored := make(hourCounts)
		if err := json.Unmarshal(enc, &stored); err != nil {
			return fn(hour, enc) // it is the caller's to say what is wrong with it
		}
		return showHour(hour, stored.plus(counts), fn)
	})
	for _, hour := range slices.Sorted(maps.Keys(over)) {
		if err == nil {
			err = showHour(hour, over[hour], fn)
		}
	}
	return err
}

func showHour(hour int64, counts hourCounts, fn func(hour int64, enc []byte) error) error {
	enc, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	return fn(hour, enc)
}

func (e *journalEngine) hoursOver() map[int64]hourCounts {
	sum := make(map[int64]hourCounts)
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, o := range []*overlay{e.frozen, e.active} {
		if o == nil {
			continue
		}
		for hour, counts := range o.ledger.hours {
			sum[hour] = sum[hour].plus(counts)
		}
	}
	return sum
}

// forget drops the note of a key's earlier record.
func (b *ledgerBatch) forget(key string) {
	if len(b.notes) == 0 {
		return
	}
	if k, err := ParseKey(key); err == nil {
		delete(b.notes, k)
	}
}
