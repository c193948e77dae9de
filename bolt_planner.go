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
	user   userWrites
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
	direct  bool // see change
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

// live is lookup for what has not expired: false means absent. A key that a
// transaction holds has a record that nobody can replace.
func (p *planner) live(key Key) (*staged, bool, error) {
	st, err := p.lookup(key)
	if err != nil {
		return nil, false, err
	}
	live := p.liveVersion(st)
	if held, ok := p.writer.store.holds.covering(key, live); ok {
		return &staged{rec: held}, true, nil
	}
	return st, live != 0, nil
}

// is reports whether the record may be replaced by who knows this version of it.
func (st *staged) is(version uint64) bool {
	return st.rec.Version == version && version != heldVersion
}

// liveVersion is the version of a record that has not expired, else 0.
func (p *planner) liveVersion(st *staged) uint64 {
	if st.rec.Version == 0 || p.writer.store.clock.expired(&st.rec, p.now) {
		return 0
	}
	return st.rec.Version
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
			damaged: st.damaged, direct: st.direct,
		})
	}
	b.user = p.user.list
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
	for bucket := range p.user.appended {
		s.watch.notify(bucketWatch(bucket))
	}
}
