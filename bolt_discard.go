package idem

import (
	"bytes"
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Discard removes a record that cannot be read, which every other method answers
// with ErrCorrupt or ErrFormat. It is the way out for its key, which is new
// afterwards: what it stood for may run again. It refuses a record that can be
// read with ErrConflict, and returns ErrNotFound if there is none.
func (s *BoltStore) Discard(ctx context.Context, key Key) error {
	if err := key.Validate(); err != nil {
		return err
	}
	_, err := s.write(ctx, &writeOp{plan: func(p *planner) (Record, error) {
		st, err := p.lookup(key)
		switch {
		case isFault(err):
			return Record{}, err
		case err != nil:
			return Record{}, p.discard(key)
		case st.rec.Version == 0:
			return Record{}, ErrNotFound
		}
		return Record{}, fmt.Errorf("%w: the record of %q can be read: delete it by its version", ErrConflict, key.String())
	}})
	return err
}

// discard stages the removal of a record that cannot be decoded.
func (p *planner) discard(key Key) error {
	st := &staged{key: []byte(key.String()), rec: Record{Key: key}, damaged: true}
	err := p.writer.store.engine.get(st.key, func(enc []byte) error {
		st.oldSize = len(enc)
		return nil
	})
	if err != nil {
		return err
	}
	p.staged[string(st.key)] = st
	p.remove(st)
	return nil
}

// deleteEntries removes every entry of the expiry index for a key, by looking at
// all of them: a damaged record does not say which one is its own.
func deleteEntries(index *bolt.Bucket, key []byte) error {
	var own [][]byte
	err := index.ForEach(func(entry, _ []byte) error {
		if len(entry) >= 8 && bytes.Equal(entry[8:], key) {
			own = append(own, bytes.Clone(entry))
		}
		return nil
	})
	for _, entry := range own {
		if err == nil {
			err = index.Delete(entry)
		}
	}
	return err
}
