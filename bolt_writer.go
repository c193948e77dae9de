package idem

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// maxBatchOps and maxBatchBytes bound what one commit takes from the queue.
	maxBatchOps   = 1024
	maxBatchBytes = 8 << 20
	// writeOverhead is roughly what an operation takes beside its value.
	writeOverhead = 256
)

// writeOp is one change on its way through the writer.
type writeOp struct {
	// plan checks the operation against the newest state, which includes the
	// earlier operations of the same batch, and stages what it changes. Its
	// results reach the caller through what it closes over, and only if the
	// batch became durable.
	plan func(p *planner) error
	size int
	took atomic.Bool // by the writer, or by the caller that gave up
	err  error
	done chan struct{}
}

// writer turns queued operations into batches: one goroutine takes whatever is
// queued, plans it, and commits it with one sync. There is no timer, so a lone
// caller never waits for company.
type writer struct {
	store *BoltStore
	queue chan *writeOp
	state storeState
	ended chan struct{}
}

func newWriter(s *BoltStore, state storeState) *writer {
	w := &writer{store: s, queue: make(chan *writeOp, maxBatchOps), state: state, ended: make(chan struct{})}
	go w.run()
	return w
}

// do queues an operation and waits for its outcome. If ctx ends while the
// operation is still queued, nothing is written.
func (w *writer) do(ctx context.Context, size int, plan func(*planner) error) error {
	op := &writeOp{plan: plan, size: size, done: make(chan struct{})}
	select {
	case w.queue <- op:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-op.done:
	case <-ctx.Done():
		if op.took.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-op.done // it is being written: say what became of it
	}
	return op.err
}

// close waits until all that is queued has been written and the goroutine has
// ended. Nobody may call do any more.
func (w *writer) close() {
	close(w.queue)
	<-w.ended
}

// lastBatch is what a clean close leaves behind: the time, and counts that no
// commit has taken along. The goroutine must have ended.
func (w *writer) lastBatch() *batch {
	p := &planner{writer: w, now: w.store.clock.Now(), state: w.state}
	b := p.batch()
	b.ledger = w.store.ledger.take(true)
	return b
}

func (w *writer) run() {
	defer close(w.ended)
	for op := range w.queue {
		runtime.Gosched() // the callers just answered come back with their next write: let them queue it
		batch := w.gather(op)
		w.write(batch)
		for _, op := range batch {
			close(op.done)
		}
	}
}

// gather takes what is queued, without waiting for more.
func (w *writer) gather(first *writeOp) []*writeOp {
	var ops []*writeOp
	limit := int(min(maxBatchBytes, w.store.config.SegmentBytes/2)) // what fits into a segment of the journal takes one write
	bytes := 0
	for op := first; ; {
		if op.took.CompareAndSwap(false, true) {
			ops = append(ops, op)
			bytes += op.size + writeOverhead
		}
		if len(ops) >= maxBatchOps || bytes >= limit {
			return ops
		}
		select {
		case next, open := <-w.queue:
			if !open {
				return ops
			}
			op = next
		default:
			return ops
		}
	}
}

// write plans and commits the operations as one batch. When there is no space
// for all of them, each is tried alone: deletes and small writes still fit.
func (w *writer) write(ops []*writeOp) {
	err := w.writeBatch(ops)
	if errors.Is(err, errNoSpace) && len(ops) > 1 {
		for _, op := range ops {
			w.write([]*writeOp{op})
		}
		return
	}
	if errors.Is(err, errNoSpace) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		for _, op := range ops {
			op.err = err
		}
	}
}

// writeBatch sets the error of each operation by its plan, and returns an error
// if none of them could be made durable.
func (w *writer) writeBatch(ops []*writeOp) error {
	s := w.store
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.checkIdentity(); err != nil {
		return s.poison(err)
	}
	p := &planner{writer: w, now: s.clock.Now(), state: w.state, staged: make(map[string]*staged)}
	for _, op := range ops {
		op.err = s.readError(guarded(func() error { return op.plan(p) }))
		if err := s.usable(); err != nil {
			return err // bbolt's locks may be held after a fault: going on could wait for ever
		}
	}
	if len(p.order) == 0 {
		return nil
	}
	b := p.batch()
	b.ledger = s.ledger.take(false)
	for _, st := range p.order {
		s.cache.write(st.rec.Key)
	}
	switch err := s.engine.commit(b); {
	case errors.Is(err, errNoSpace):
		for _, st := range p.order {
			s.cache.wrote(st.rec.Key, nil)
		}
		return err
	case err != nil:
		return s.poison(fmt.Errorf("commit: %w", err))
	}
	w.state = p.state
	p.publish()
	return nil
}

// planner is the state that a batch's operations are checked against: what is
// durable, and on top of it what earlier operations of the batch have staged.
type planner struct {
	writer *writer
	now    time.Time
	state  storeState
	added  int64 // records added less records removed, so far
	staged map[string]*staged
	order  []*staged
}

// staged is the newest state of one key within the batch.
type staged struct {
	key     []byte
	oldSize int    // of the encoded record that is durable; 0 if there is none
	rec     Record // zero Version if deleted or never there
	enc     []byte // of a changed rec; nil if deleted
	removal uint64 // version of the last removal
	changed bool
	fresh   bool // a new record, not the next version of before
	damaged bool // what is durable cannot be read
}

// lookup returns what the key holds, expired or not. A zero Version means that
// it holds nothing.
func (p *planner) lookup(key Key) (*staged, error) {
	text := key.String()
	if st, ok := p.staged[text]; ok {
		return st, nil
	}
	st := &staged{key: []byte(text), rec: Record{Key: key}}
	err := p.writer.store.engine.get(st.key, func(enc []byte) error {
		if enc == nil {
			return nil
		}
		var err error
		st.rec, err = decodeRecord(st.key, enc, true)
		st.oldSize = len(enc)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.staged[text] = st
	return st, nil
}

// live is lookup for what has not expired: false means absent.
func (p *planner) live(key Key) (*staged, bool, error) {
	st, err := p.lookup(key)
	if err != nil {
		return nil, false, err
	}
	return st, st.rec.Version != 0 && !p.writer.store.clock.expired(&st.rec, p.now), nil
}

// put stages rec under the next version and returns it.
func (p *planner) put(st *staged, rec Record) Record {
	p.touch(st)
	p.state.version++
	rec.Version = p.state.version
	rec.Replays, rec.LastReplayAt, rec.Mismatches, rec.DistinctMismatches = 0, time.Time{}, 0, 0
	st.enc = encodeRecord(st.key, &rec)
	rec.Size = len(st.enc)
	if st.rec.Version == 0 {
		p.added++
	}
	st.rec = rec
	return rec
}

// remove stages the removal of a record under a version of its own.
func (p *planner) remove(st *staged) {
	p.touch(st)
	p.state.version++
	p.added--
	st.rec, st.enc, st.fresh, st.removal = Record{Key: st.rec.Key}, nil, true, p.state.version
}

func (p *planner) touch(st *staged) {
	if !st.changed {
		st.changed = true
		p.order = append(p.order, st)
	}
}

// batch sums up what the operations have staged.
func (p *planner) batch() *batch {
	b := &batch{}
	for _, st := range p.order {
		b.changes = append(b.changes, change{
			key: st.key, enc: st.enc, version: max(st.rec.Version, st.removal), oldSize: st.oldSize, fresh: st.fresh,
			damaged: st.damaged,
		})
	}
	p.state.clock = p.now
	if !p.writer.store.config.Visitor {
		p.state.servedUntil, p.state.downtimes = p.now, p.writer.store.clock.pending(p.now)
	}
	b.state = p.state
	return b
}

// publish shows a durable batch to the cache and to those who wait.
func (p *planner) publish() {
	s := p.writer.store
	for _, st := range p.order {
		if st.rec.Version == 0 {
			s.ledger.forget(st.rec.Key)
			s.cache.wrote(st.rec.Key, nil)
		} else {
			s.cache.wrote(st.rec.Key, &st.rec)
		}
		s.watch.notify(st.rec.Key)
	}
}
