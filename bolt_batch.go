package idem

import (
	"errors"
	"fmt"
	"time"
)

// relaxedDelay is how long a relaxed write may wait for a sync that is made
// anyway.
const relaxedDelay = 2 * time.Millisecond

// openBatch is planned and not yet durable. One that consists of relaxed writes
// may be put off, and then grows.
type openBatch struct {
	planner *planner
	ops     []*writeOp
	bytes   int
	began   time.Time
}

// write plans operations on top of what was put off, and commits all of it
// unless it can be put off again. When there is no space for all of them, each is
// tried alone: deletes and small writes still fit. The error is the outcome of
// what has been written; the operations have it too.
func (w *writer) write(ops []*writeOp, all bool) error {
	b := w.open
	if w.open = nil; b == nil {
		p := &planner{writer: w, state: w.state, staged: make(map[string]*staged, len(ops))}
		b = &openBatch{planner: p, began: time.Now()}
	}
	err := w.plan(b, ops)
	if err == nil && !all && b.relaxed() && time.Since(b.began) < relaxedDelay {
		w.putOff(b)
		return nil
	}
	if err == nil {
		err = w.commit(b)
	}
	nothing := errors.Is(err, errNoSpace) || errors.Is(err, errRefused)
	if nothing {
		w.state.version = b.planner.state.version // a relaxed caller may have been told one that is not to be given again
	}
	if nothing && len(b.ops) > 1 {
		err = nil
		for _, op := range b.ops {
			err = errors.Join(err, w.write([]*writeOp{op}, true))
		}
		return err
	}
	if errors.Is(err, errNoSpace) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if errors.Is(err, errRefused) {
		err = fmt.Errorf("%w: %w", ErrInvalidInput, err)
	}
	if err != nil {
		for _, op := range b.ops {
			op.end(Record{}, err)
		}
	}
	return err
}

// plan adds operations to a batch and sets the outcome of each by its plan. It
// returns an error if none of them could be made durable.
func (w *writer) plan(b *openBatch, ops []*writeOp) error {
	s := w.store
	b.ops = append(b.ops, ops...)
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.checkIdentity(); err != nil {
		return s.poison(err)
	}
	b.planner.now = s.clock.Now()
	for _, op := range ops {
		var rec Record
		err := guarded(func() (err error) {
			rec, err = op.plan(b.planner)
			return err
		})
		op.end(rec, s.readError(err))
		b.bytes += op.size + writeOverhead
		if err := s.usable(); err != nil {
			return err // bbolt's locks may be held after a fault: going on could wait for ever
		}
	}
	for _, op := range ops {
		if op.relaxed {
			op.answer()
		}
	}
	return nil
}

// end sets the outcome for a caller that has not gone on.
func (op *writeOp) end(rec Record, err error) {
	if !op.answered {
		op.rec, op.err = rec, err
	}
}

// relaxed reports whether nobody waits for the batch. It is false for one that
// is large: the next operation might not fit into it.
func (b *openBatch) relaxed() bool {
	for _, op := range b.ops {
		if !op.relaxed {
			return false
		}
	}
	return len(b.ops) < maxBatchOps/2 && b.bytes < maxBatchBytes/2
}

// putOff leaves a batch for the next leader, or for the timer.
func (w *writer) putOff(b *openBatch) {
	w.open = b
	wait := relaxedDelay - time.Since(b.began)
	if w.timer == nil {
		w.timer = time.AfterFunc(wait, w.timeUp)
	} else {
		w.timer.Reset(wait)
	}
}

// timeUp writes what was put off. If there is a leader it is his to do.
func (w *writer) timeUp() {
	w.mu.Lock()
	mine := !w.led && w.open != nil
	w.led = w.led || mine
	w.mu.Unlock()
	if mine {
		w.lead(true)
	}
}

// commit makes a batch durable and shows it to everybody.
func (w *writer) commit(b *openBatch) error {
	s, p := w.store, b.planner
	if len(p.order)+len(p.user.list) == 0 {
		return nil
	}
	changes := p.batch()
	changes.ledger = s.ledger.take(false)
	for _, st := range p.order {
		s.cache.write(st.rec.Key)
	}
	id := s.txs.start(changes.user)
	switch err := s.engine.commit(changes); {
	case errors.Is(err, errNoSpace), errors.Is(err, errRefused):
		for _, st := range p.order {
			s.cache.wrote(st.rec.Key, nil)
		}
		return err
	case err != nil:
		return s.poison(fmt.Errorf("commit: %w", err))
	}
	w.state = p.state
	s.txs.publish(id)
	p.publish()
	return nil
}
