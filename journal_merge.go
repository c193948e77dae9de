package idem

import (
	"errors"
	"sync/atomic"
	"time"
)

const (
	// mergeChunk is how many records one transaction of a merge takes in. Small
	// enough that a commit of the journal does not wait long for the disk.
	mergeChunk = 128
	// indexChunks is how many chunks of records have as many index entries as one
	// transaction takes in.
	indexChunks = 8
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
	e.filled.Store(0)
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

// mergeOverlay puts an overlay into the file. While there is no space it tries
// again; somebody who waits is told.
func (e *journalEngine) mergeOverlay(o *overlay, generation uint64, chunk int, m *mergeRun) error {
	e.mu.Lock()
	o.sorted()
	e.mu.Unlock()
	steps := o.mergeSteps(e.file, generation, chunk, m.background)
	for i, step := range steps {
		began := time.Now()
		err := e.file.mergeStep(step, o.state)
		for errors.Is(err, errNoSpace) {
			select {
			case m.blocked <- err:
			case <-time.After(mergeRetry):
			case <-m.quit:
				return err
			}
			err = e.file.mergeStep(step, o.state)
		}
		if err != nil {
			return err
		}
		if m.hurry.Load() || e.late(float64(i+1)/float64(len(steps))) {
			continue
		}
		select { // leave the disk to commits for as long as it was taken from them
		case <-time.After(time.Since(began)):
		case <-m.quit:
			return errors.New("the merge was given up")
		}
	}
	return nil
}

// late reports whether a merge of which some share is done might not be done
// before the segment that is written is full.
func (e *journalEngine) late(share float64) bool {
	return share < 2*float64(e.filled.Load())/float64(e.config.SegmentBytes)
}

// mergeAll merges the active overlay at once. Nobody commits any more.
func (e *journalEngine) mergeAll(generation uint64) error {
	m := newMergeRun()
	m.hurry.Store(true)
	close(m.quit) // to fail at once without space
	return e.mergeOverlay(e.active, generation, recoveryChunk, m)
}
