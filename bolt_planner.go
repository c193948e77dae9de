package idem

import "time"

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
	if p.writer.store.cache.isAbsent(key) {
		p.staged[text] = st
		return st, nil
	}
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
