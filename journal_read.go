package idem

import (
	"bytes"
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// lookup returns the newest entry of key that is not in the file.
func (e *journalEngine) lookup(key []byte) (overlayEntry, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	entry, ok := e.active.entries[string(key)]
	if !ok && e.frozen != nil {
		entry, ok = e.frozen.entries[string(key)]
	}
	return entry, ok
}

func (e *journalEngine) get(key []byte, fn func([]byte) error) error {
	if entry, ok := e.lookup(key); ok && !entry.inFile {
		return fn(entry.enc)
	}
	return e.file.get(key, fn)
}

// scan merges the file with what lies over it, as much of the overlay at a time
// as a page of the caller can hold.
func (e *journalEngine) scan(prefix, after []byte, fn func(key, enc []byte) bool) error {
	for more := true; more; {
		over, end := e.overlaidAfter(string(prefix), string(after), scanPageSize)
		err := e.scanTo(end, over, prefix, after, func(key, enc []byte) bool {
			more = fn(key, enc)
			return more
		})
		if err != nil || end == "" {
			return err
		}
		after = []byte(end)
	}
	return nil
}

// scanTo is scan up to the key end, or without a limit if it is empty.
func (e *journalEngine) scanTo(end string, over []overlaid, prefix, after []byte, fn func(key, enc []byte) bool) error {
	more := true
	show := func(o overlaid) {
		if o.enc != nil {
			more = fn([]byte(o.key), o.enc)
		}
	}
	err := e.file.scan(prefix, after, func(key, enc []byte) bool {
		if end != "" && string(key) > end {
			return false
		}
		for more && len(over) > 0 && over[0].key < string(key) {
			show(over[0])
			over = over[1:]
		}
		switch {
		case !more:
		case len(over) > 0 && over[0].key == string(key) && !over[0].inFile:
			show(over[0])
			over = over[1:]
		default:
			more = fn(key, enc)
		}
		return more
	})
	for ; err == nil && more && len(over) > 0; over = over[1:] {
		show(over[0])
	}
	return err
}

func (e *journalEngine) snapshot(fn func(*bolt.Tx, []overlaid) error) error {
	return guarded(func() error {
		tx, over, err := e.beginSnapshot()
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // of a read transaction
		return fn(tx, over)
	})
}

func (e *journalEngine) beginSnapshot() (*bolt.Tx, []overlaid, error) {
	e.file.writing.Lock() // so that no merge comes in between
	defer e.file.writing.Unlock()
	over, _ := e.overlaidAfter("", "", math.MaxInt)
	tx, err := e.file.db.Begin(false)
	return tx, slices.DeleteFunc(over, func(o overlaid) bool { return o.inFile }), err
}

// overlaidAfter returns what lies over the file, in order, up to the key end; all
// of it if end is empty.
func (e *journalEngine) overlaidAfter(prefix, after string, limit int) (over []overlaid, end string) {
	e.mu.Lock() // for writing: the keys are sorted when they are needed
	defer e.mu.Unlock()
	over, end = e.active.after(prefix, after, limit)
	if e.frozen == nil {
		return over, end
	}
	older, olderEnd := e.frozen.after(prefix, after, limit)
	if over = mergeOverlaid(older, over); end == "" || olderEnd != "" && olderEnd < end {
		end = olderEnd
	}
	if end != "" { // beyond it one of the two was not read
		n := slices.IndexFunc(over, func(o overlaid) bool { return o.key > end })
		if n >= 0 {
			over = over[:n]
		}
	}
	return over, end
}

// due reads the index of the file, without the entries of records that lie over
// it, and adds these.
func (e *journalEngine) due(stretch span, after []byte, limit int) ([][]byte, error) {
	over := e.overlaidDue(stretch, after)
	var entries [][]byte
	for cursor := after; ; {
		page, err := e.file.due(stretch, cursor, limit)
		if err != nil {
			return nil, err
		}
		for _, entry := range page {
			if over, ok := e.lookup(entry[8:]); !ok || over.inFile {
				entries = append(entries, entry)
			}
		}
		if len(page) < limit || len(entries) >= limit {
			break
		}
		cursor = slices.Clone(page[len(page)-1])
	}
	entries = append(entries, over...)
	slices.SortFunc(entries, bytes.Compare)
	return entries[:min(limit, len(entries))], nil
}

func (e *journalEngine) overlaidDue(stretch span, after []byte) [][]byte {
	from, to := toMicros(stretch.from), toMicros(stretch.to)
	e.mu.RLock()
	defer e.mu.RUnlock()
	var due [][]byte
	for _, o := range []*overlay{e.active, e.frozen} {
		if o == nil {
			continue
		}
		for key, entry := range o.entries {
			at := headOf(entry.enc).expires
			if entry.enc == nil || at <= from || at > to {
				continue
			}
			if over, ok := e.active.entries[key]; ok && over.version != entry.version {
				continue // the active overlay has a newer one
			}
			if index := expiryEntry(at, []byte(key)); bytes.Compare(index, after) > 0 {
				due = append(due, index)
			}
		}
	}
	return due
}
