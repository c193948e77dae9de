package idem

import (
	"slices"
	"strings"
)

// overlay holds the newest records of one segment of the journal: what is
// durable but not yet in the bbolt file. It takes about the size of the segment
// in memory, twice that for many small records.
type overlay struct {
	entries map[string]overlayEntry
	keys    []string   // sorted
	added   []string   // not yet in keys
	state   storeState // of the last batch
	ledger  ledgerBatch
}

// overlayEntry is the newest record of a key, or its removal.
type overlayEntry struct {
	version uint64
	enc     []byte // nil: removed
	fresh   bool   // see change
	// inFile means that the record was committed to the file directly. The entry
	// stays, because the segment still holds older ones of the key.
	inFile bool
}

func newOverlay() *overlay { return &overlay{entries: make(map[string]overlayEntry)} }

// put keeps the entry if it is newer than the one it has.
func (o *overlay) put(key string, e overlayEntry) {
	old, known := o.entries[key]
	if known && old.version >= e.version {
		return
	}
	if !known {
		o.added = append(o.added, key)
	}
	e.fresh = e.fresh || old.fresh
	o.entries[key] = e
}

// sorted returns all keys in order. The caller holds the lock for writing.
func (o *overlay) sorted() []string {
	if len(o.added) > 0 {
		o.keys = append(o.keys, o.added...)
		slices.Sort(o.keys)
		o.added = nil
	}
	return o.keys
}

// after appends entries with the prefix whose key is greater than after, in
// order, until it has found limit that are not removals. Then end is the key that
// it has come to.
func (o *overlay) after(prefix, after string, limit int) (list []overlaid, end string) {
	keys := o.sorted()
	i, found := slices.BinarySearch(keys, max(prefix, after))
	if found && keys[i] == after {
		i++
	}
	for puts := 0; i < len(keys) && strings.HasPrefix(keys[i], prefix); i++ {
		e := o.entries[keys[i]]
		list = append(list, overlaid{keys[i], e})
		if e.enc != nil || e.inFile {
			puts++
		}
		if puts == limit {
			return list, keys[i]
		}
	}
	return list, ""
}

// overlaid is an entry with its key.
type overlaid struct {
	key string
	overlayEntry
}

// mergeOverlaid merges two sorted lists, of which newer has the last word.
func mergeOverlaid(older, newer []overlaid) []overlaid {
	merged := make([]overlaid, 0, len(older)+len(newer))
	for len(older) > 0 && len(newer) > 0 {
		switch strings.Compare(older[0].key, newer[0].key) {
		case -1:
			merged, older = append(merged, older[0]), older[1:]
		case 1:
			merged, newer = append(merged, newer[0]), newer[1:]
		default:
			older = older[1:]
		}
	}
	return append(append(merged, older...), newer...)
}
