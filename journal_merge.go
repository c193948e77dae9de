package idem

import (
	"errors"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	// mergeChunk is how many records one transaction of a merge takes in. Small
	// enough that a commit of the journal does not wait long for the disk.
	mergeChunk = 256
	// recoveryChunk is used when nobody waits for anything else.
	recoveryChunk = 4096
	mergeRetry    = 100 * time.Millisecond
)

// mergeRun is the merging of one frozen overlay into the file. One goroutine
// does it; the committing goroutine owns it and waits for it.
type mergeRun struct {
	background bool          // the store is in use meanwhile
	hurry      atomic.Bool   // somebody waits: no pauses
	quit       chan struct{} // closed to give up
	blocked    chan error    // gets why it cannot go on now, if somebody listens
	done       chan struct{}
	err        error // why it ended without success; read after done
}

func newMergeRun() *mergeRun {
	return &mergeRun{quit: make(chan struct{}), blocked: make(chan error), done: make(chan struct{})}
}

// wait waits until the run has ended, or until it finds no space.
func (m *mergeRun) wait() error {
	m.hurry.Store(true)
	defer m.hurry.Store(false)
	select {
	case <-m.done:
		return m.err
	case err := <-m.blocked:
		return err
	}
}

// end ends the run, finished or not.
func (m *mergeRun) end() {
	close(m.quit)
	<-m.done
}

// rotate freezes the active overlay, goes on in the other segment and has the
// frozen one merged. If the other segment is still being merged it waits.
func (e *journalEngine) rotate() error {
	if e.merge != nil {
		if err := e.merge.wait(); err != nil {
			return err
		}
	}
	e.mu.Lock()
	e.frozen, e.active = e.active, newOverlay()
	e.mu.Unlock()
	generation := e.log.Generation()
	e.log.Switch()
	m, frozen := newMergeRun(), e.frozen
	m.background = true
	e.merge = m
	go func() {
		defer close(m.done)
		if m.err = e.mergeOverlay(frozen, generation, mergeChunk, m); m.err == nil {
			e.mu.Lock()
			e.frozen = nil
			e.mu.Unlock()
		}
	}()
	return nil
}

// mergeOverlay puts an overlay into the file in key order, in chunks, and with
// the last one says that the generation is merged. While there is no space it
// tries again; somebody who waits is told.
func (e *journalEngine) mergeOverlay(o *overlay, generation uint64, chunk int, m *mergeRun) error {
	e.mu.Lock()
	keys := o.sorted()
	e.mu.Unlock()
	for last := false; !last; {
		end := min(chunk, len(keys))
		last = end == len(keys)
		began := time.Now()
		err := e.file.mergeChunk(o, keys[:end], generation, last, m.background)
		for errors.Is(err, errNoSpace) {
			select {
			case m.blocked <- err:
			case <-time.After(mergeRetry):
			case <-m.quit:
				return err
			}
			err = e.file.mergeChunk(o, keys[:end], generation, last, m.background)
		}
		if err != nil {
			return err
		}
		keys = keys[end:]
		if !last && !m.hurry.Load() {
			select { // leave the disk to commits for as long as it was taken from them
			case <-time.After(time.Since(began)):
			case <-m.quit:
				return errors.New("the merge was given up")
			}
		}
	}
	return nil
}

// mergeAll merges the active overlay at once. Nobody commits any more.
func (e *journalEngine) mergeAll(generation uint64) error {
	m := newMergeRun()
	m.hurry.Store(true)
	close(m.quit) // to fail at once without space
	return e.mergeOverlay(e.active, generation, recoveryChunk, m)
}

// mergeChunk commits some of an overlay's records to the file. The last chunk
// takes the ledger along and says that the generation is merged. keepRoom leaves
// the room that removing records needs.
func (e *boltEngine) mergeChunk(o *overlay, keys []string, generation uint64, last, keepRoom bool) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.update(func(tx *bolt.Tx, state *storeState) error {
		b := &batch{state: o.state}
		for _, key := range keys {
			if entry := o.entries[key]; !entry.inFile {
				b.changes = append(b.changes, change{key: []byte(key), enc: entry.enc, version: entry.version, fresh: entry.fresh})
			}
		}
		if keepRoom {
			if err := e.reserve(tx, b); err != nil {
				return err
			}
		}
		if last {
			b.ledger, state.merged = o.ledger, generation
		}
		return b.apply(tx, state)
	})
}
