package idem

import (
	"context"
	"runtime"
	"slices"
	"sync"
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
	// earlier operations of the same batch, and stages what it changes. It may
	// run again, in another batch.
	plan func(p *planner) (Record, error)
	size int
	// relaxed: the caller goes on when the operation is planned.
	relaxed bool

	rec      Record
	err      error
	answered bool      // rec and err are the caller's
	turn     chan turn // what the caller is woken with

	queued bool // guarded by the writer's mu
}

// turn is what a waiting caller does next.
type turn int

const (
	goOn   turn = iota + 1 // the operation has its outcome
	toLead                 // write what is queued, the own operation first
)

// writer turns operations into batches, each made durable with one sync. It has
// no goroutine and waits for no company: a caller that finds nobody at work
// leads, which is to write what is queued, and to hand over to a caller that has
// queued meanwhile. A goroutine that does all the writing would cost a lone
// caller two switches for each write, on an idle machine as long as the sync.
type writer struct {
	store *BoltStore

	state storeState  // of the newest durable batch; the leader's
	open  *openBatch  // what is put off, or nil; the leader's
	timer *time.Timer // that ends the putting off; likewise

	mu    sync.Mutex
	queue []*writeOp
	led   bool      // there is a leader
	idle  sync.Cond // that there is none any more
}

func newWriter(s *BoltStore, state storeState) *writer {
	w := &writer{store: s, state: state}
	w.idle.L = &w.mu
	return w
}

// do queues an operation and waits for its outcome. If ctx ends while the
// operation is still queued, nothing is written.
func (w *writer) do(ctx context.Context, op *writeOp) (Record, error) {
	op.turn = make(chan turn, 1)
	if w.enqueue(op) {
		w.lead(false)
		return op.rec, op.err
	}
	var next turn
	select {
	case next = <-op.turn:
	case <-ctx.Done():
		if w.withdraw(op) {
			return Record{}, ctx.Err()
		}
		next = <-op.turn // it is being written: say what became of it
	}
	if next == toLead {
		w.lead(false)
	}
	return op.rec, op.err
}

// enqueue reports whether the caller has to lead.
func (w *writer) enqueue(op *writeOp) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, op)
	op.queued = true
	leads := !w.led
	w.led = true
	return leads
}

// withdraw takes an operation back, if nobody has begun to write it.
func (w *writer) withdraw(op *writeOp) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, op)
	if i < 0 || !op.queued {
		return false
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	return true
}

// lead writes one batch. all also writes what could still be put off.
func (w *writer) lead(all bool) {
	ops := w.gather()
	w.write(ops, all)
	for _, op := range ops {
		op.answer()
	}
	if w.handOver() {
		runtime.Gosched() // whoever is woken last runs next: the disk waits for nobody else
	}
}

// answer lets the caller go on, once.
func (op *writeOp) answer() {
	if !op.answered {
		op.answered = true
		op.turn <- goOn
	}
}

// gather takes what is queued, without waiting for more.
func (w *writer) gather() []*writeOp {
	limit := int(min(maxBatchBytes, w.store.config.SegmentBytes/2)) // what fits into a segment of the journal takes one write
	w.mu.Lock()
	defer w.mu.Unlock()
	n, bytes := 0, 0
	for n < min(len(w.queue), maxBatchOps) && (n == 0 || bytes < limit) {
		w.queue[n].queued = false
		bytes += w.queue[n].size + writeOverhead
		n++
	}
	ops := slices.Clone(w.queue[:n])
	w.queue = slices.Delete(w.queue, 0, n)
	return ops
}

// handOver ends the caller's lead and reports whether there is another leader.
// That one's operation is the first in the queue, so that it is in its batch.
func (w *writer) handOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.led = false
		w.idle.Broadcast()
		return false
	}
	next := w.queue[0]
	next.queued = false
	next.turn <- toLead
	return true
}

// close writes what is put off. Nobody may call do any more.
func (w *writer) close() error {
	w.mu.Lock()
	for w.led {
		w.idle.Wait()
	}
	w.led = true // the timer comes too late
	w.mu.Unlock()
	if w.open == nil {
		return nil
	}
	w.timer.Stop()
	return w.write(nil, true)
}

// lastBatch is what a clean close leaves behind: the time, and counts that no
// commit has taken along. The writer must be closed.
func (w *writer) lastBatch() *batch {
	p := &planner{writer: w, now: w.store.clock.Now(), state: w.state}
	b := p.batch()
	b.ledger = w.store.ledger.take(true)
	return b
}
