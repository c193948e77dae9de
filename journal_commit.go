package idem

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/idembolt/idem/internal/journal"
)

func (e *journalEngine) commit(b *batch) error {
	if e.failed != nil {
		return e.failed
	}
	err := e.write(b)
	e.mu.Lock()
	defer e.mu.Unlock()
	// The next batch will not be planned on what was removed before this.
	maps.DeleteFunc(e.expiring, func(_ string, done bool) bool { return done })
	return err
}

// write appends to the journal. Large records go to the file directly, first:
// that can fail for want of space with nothing written, the journal cannot.
func (e *journalEngine) write(b *batch) error {
	if e.log == nil && !e.begin() {
		return e.commitToFile(b)
	}
	direct, logged := splitDirect(b)
	if e.removesOver(direct) {
		return e.commitDrained(b)
	}
	if logged == nil {
		return e.commitToFile(direct)
	}
	record := logged.journalBatch(e.file.version.Load())
	size := record.Size()
	if size > e.config.SegmentBytes {
		return e.commitDrained(b)
	}
	if size > e.log.Room() {
		if err := e.rotate(); err != nil {
			return e.commitAround(b, err)
		}
	}
	if direct != nil {
		if err := e.commitToFile(direct); err != nil {
			return err
		}
	}
	return e.append(logged, record)
}

// splitDirect takes what the file has to commit out of a batch: large records, and
// all that transactions write, in one piece. Either part may be nil. The
// operations of a batch are independent, so the parts may become durable one
// after the other.
func splitDirect(b *batch) (direct, logged *batch) {
	goes := func(c change) bool { return c.direct || len(c.enc) >= directBytes || c.damaged } // damage is in the file
	if len(b.user) == 0 && !slices.ContainsFunc(b.changes, goes) {
		return nil, b
	}
	direct, logged = &batch{state: b.state, user: b.user}, &batch{state: b.state, ledger: b.ledger}
	for _, c := range b.changes {
		if goes(c) {
			direct.changes = append(direct.changes, c)
		} else {
			logged.changes = append(logged.changes, c)
		}
	}
	if len(logged.changes) == 0 {
		direct.ledger = b.ledger
		return direct, nil
	}
	return direct, logged
}

// removesOver reports whether a batch for the file removes what a segment of the
// journal still has: nothing in the file would keep a merge, or the recovery after a
// crash, from bringing it back.
func (e *journalEngine) removesOver(direct *batch) bool {
	return direct != nil && slices.ContainsFunc(direct.changes, func(c change) bool {
		_, over := e.lookup(c.key)
		return over && c.enc == nil
	})
}

// commitDrained commits what is larger than a segment to the file, when nothing
// is left in the journal that a merge could put over it.
func (e *journalEngine) commitDrained(b *batch) error {
	var err error
	if e.log.Room() < e.config.SegmentBytes {
		err = e.rotate()
	}
	if err == nil && e.merge != nil {
		err = e.merge.wait()
	}
	if err != nil {
		return e.commitAround(b, err)
	}
	return e.commitToFile(b)
}

// commitAround goes past a journal that is full because there is no space to
// merge it: removing records, or what else fits into the file, may make some. A
// removal of what only the journal has must wait: the merge would bring it back.
func (e *journalEngine) commitAround(b *batch, cause error) error {
	if !errors.Is(cause, errNoSpace) {
		return cause
	}
	for _, c := range b.changes {
		if _, over := e.lookup(c.key); over && c.enc == nil {
			return cause
		}
	}
	return e.commitToFile(b)
}

// commitToFile commits to the file and takes what it replaces out of the way of
// readers.
func (e *journalEngine) commitToFile(b *batch) error {
	var counts ledgerBatch
	if e.log != nil { // they may be about records that the file does not have yet
		counts, b.ledger = b.ledger, ledgerBatch{}
	}
	if err := e.file.commit(b); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active.ledger.add(counts)
	for _, c := range b.changes {
		key := string(c.key)
		if _, ok := e.active.entries[key]; ok {
			e.active.put(key, overlayEntry{version: c.version, inFile: true})
		} else if e.frozen != nil {
			if _, ok := e.frozen.entries[key]; ok {
				e.active.put(key, overlayEntry{version: c.version, inFile: true})
			}
		}
	}
	e.count(b)
	return nil
}

// append makes a batch that there is room for durable.
func (e *journalEngine) append(b *batch, record journal.Batch) error {
	err := e.log.CheckIdentity()
	if err == nil {
		err = e.log.Append(record)
	}
	if err != nil {
		e.failed = fmt.Errorf("%w: %w", errOutcomeUnknown, err)
		return e.failed
	}
	e.filled.Store(e.config.SegmentBytes - e.log.Room())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active.apply(b)
	e.count(b)
	return nil
}

// apply adds a durable batch.
func (o *overlay) apply(b *batch) {
	for _, c := range b.changes {
		o.put(string(c.key), overlayEntry{version: c.version, enc: c.enc, fresh: c.fresh})
		if c.fresh {
			o.ledger.forget(string(c.key))
		}
	}
	o.state = b.state
	o.ledger.add(b.ledger)
}

// count keeps the totals. The caller holds mu.
func (e *journalEngine) count(b *batch) {
	for _, c := range b.changes {
		if _, removed := e.expiring[string(c.key)]; removed {
			delete(e.expiring, string(c.key))
			c.oldSize = 0 // whoever removes it counts it
		}
		e.bytes.Add(int64(len(c.enc) - c.oldSize))
		switch {
		case c.oldSize == 0 && c.enc != nil:
			e.records.Add(1)
		case c.oldSize != 0 && c.enc == nil:
			e.records.Add(-1)
		}
	}
}

// removeExpired removes from the file what has no entry in the journal. Nothing
// is written to the journal for it: a removal that is lost in a crash brings
// back a record that has expired.
func (e *journalEngine) removeExpired(keys []Key, check func(*Record) bool) (removed, rest []Key, err error) {
	if !e.begun.Load() {
		return e.file.removeExpired(keys, check)
	}
	removed, rest, size, err := e.file.removeDirect(keys, check, func(key []byte, gone bool) bool {
		if _, over := e.lookup(key); over || gone {
			return over
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.expiring[string(key)] = false
		return false
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range removed {
		if _, waits := e.expiring[key.String()]; waits {
			e.expiring[key.String()] = true
		}
	}
	if err != nil {
		clear(e.expiring)
		return nil, nil, err
	}
	e.records.Add(-int64(len(removed)))
	e.bytes.Add(-size)
	return removed, rest, nil
}
