package idem

import (
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// reserveBytes is the room that new keys must leave on the disk. bbolt writes
// every change to free pages, so even a delete needs some before it gives any:
// on a disk filled to the last block nothing could be removed any more.
const reserveBytes = 256 << 10

// reserve makes sure that a batch with new keys leaves that room: free pages in
// the file, or blocks behind them, which it has the file system set aside.
// Other batches may use it up, so that attempts can finish and records be
// removed. It fails like a write that finds no space.
func (e *boltEngine) reserve(tx *bolt.Tx, b *batch) error {
	if !b.hasNewKeys() {
		return nil
	}
	stats := e.db.Stats()
	free := int64(stats.FreePageN+stats.PendingPageN) * int64(e.db.Info().PageSize)
	want := reserveBytes + 2*b.size() - free
	if want <= 0 || tx.Size()+want <= e.reserved {
		return nil
	}
	n := want + reserveBytes // more than is wanted, so that not every commit has to ask
	err := preallocate(e.file, tx.Size(), n)
	if err != nil && isNoSpace(err) {
		n = want
		err = preallocate(e.file, tx.Size(), n)
	}
	switch {
	case err == nil:
		e.reserved = tx.Size() + n
	case isNoSpace(err):
		return fmt.Errorf("no room is left for removing records: %w", err)
	}
	return nil // any other error: the file system cannot do it
}

func (b *batch) hasNewKeys() bool {
	for _, c := range b.changes {
		if c.fresh && c.enc != nil {
			return true
		}
	}
	return slices.ContainsFunc(b.user, func(w userWrite) bool { return w.value != nil })
}

func (b *batch) size() (bytes int64) {
	for _, c := range b.changes {
		bytes += int64(len(c.enc))
	}
	for _, w := range b.user {
		bytes += int64(len(w.key) + len(w.value))
	}
	return bytes
}
