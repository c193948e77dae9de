package idem

import (
	"bytes"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// mergeStep is what one transaction of a merge does.
type mergeStep func(tx *bolt.Tx, state *storeState) error

// mergeSteps takes a merge apart: first the records in the order of their keys,
// then their entries in the order of the index, each so that a transaction
// touches few pages, then the ledger and the word that the generation is merged.
// With every record its entry would be put among those of its time, and every
// transaction would write all pages of that time again.
//
// After a crash between the steps the file has records that its index lacks. The
// journal still has all of them, and the next merge does every step again.
//
// The overlay must be sorted. keepRoom leaves the room that removing needs.
func (o *overlay) mergeSteps(file *boltEngine, generation uint64, chunk int, keepRoom bool) []mergeStep {
	var steps []mergeStep
	for keys := range slices.Chunk(o.keys, chunk) {
		steps = append(steps, func(tx *bolt.Tx, state *storeState) error {
			changes := o.changes(keys)
			if keepRoom {
				if err := file.reserve(tx, &batch{changes: changes}); err != nil {
					return err
				}
			}
			for _, c := range changes {
				if _, err := c.applyRecord(tx, state); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for entries := range slices.Chunk(o.expiryEntries(), indexChunks*chunk) {
		steps = append(steps, func(tx *bolt.Tx, _ *storeState) error { return o.applyIndex(tx, entries) })
	}
	return append(steps, func(tx *bolt.Tx, state *storeState) error {
		state.merged = generation
		return o.ledger.apply(tx)
	})
}

func (o *overlay) changes(keys []string) []change {
	var changes []change
	for _, key := range keys {
		if e := o.entries[key]; !e.inFile {
			changes = append(changes, change{key: []byte(key), enc: e.enc, version: e.version, fresh: e.fresh})
		}
	}
	return changes
}

// expiryEntries are those of the overlay's records, in order.
func (o *overlay) expiryEntries() [][]byte {
	var entries [][]byte
	for key, e := range o.entries {
		if e.enc != nil && !e.inFile {
			entries = append(entries, expiryEntry(headOf(e.enc).expires, []byte(key)))
		}
	}
	slices.SortFunc(entries, bytes.Compare)
	return entries
}

// applyIndex puts the entries of those records that are still the file's newest:
// a direct commit may have replaced one since.
func (o *overlay) applyIndex(tx *bolt.Tx, entries [][]byte) error {
	records, index := tx.Bucket(bucketRecords), tx.Bucket(bucketExpiry)
	index.FillPercent = indexFill
	for _, entry := range entries {
		key := entry[8:]
		if headOf(records.Get(key)).version != o.entries[string(key)].version {
			continue
		}
		if err := index.Put(entry, nil); err != nil {
			return err
		}
	}
	return nil
}

// mergeStep commits one step. The state is that of the overlay.
func (e *boltEngine) mergeStep(step mergeStep, overlaid storeState) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.update(true, func(tx *bolt.Tx, state *storeState) error {
		if err := step(tx, state); err != nil {
			return err
		}
		state.follow(overlaid)
		return nil
	})
}
