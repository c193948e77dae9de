package idem

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/idembolt/idem/internal/journal"
)

const (
	defaultSegmentBytes = 8 << 20
	minSegmentBytes     = 64 << 10
)

// openEngine puts the engine over an open bbolt file that the configuration
// asks for, after what an earlier holder has left in a journal is in the file,
// or, for a reader, over it.
func (s *BoltStore) openEngine(file *boltEngine) (engine, storeState, error) {
	c := journal.Config{Store: s.file.id, SegmentBytes: s.config.SegmentBytes}
	if s.config.tap != nil {
		s.config.tap(file, &c)
	}
	e := newJournalEngine(file, s.path+journal.Suffix, c, s.config.journalAfter)
	state, err := e.recover(s.config.ReadOnly)
	if err != nil {
		return nil, state, err
	}
	if s.config.Visitor && !s.config.ReadOnly {
		return file, state, nil // too short-lived to begin a journal
	}
	return e, state, nil
}

// recover reads a journal that an earlier holder has left. A reader keeps its
// records in memory; everybody else merges them and removes it.
func (e *journalEngine) recover(readOnly bool) (storeState, error) {
	config := e.config
	config.Sync = func(*os.File) error { return nil } // merging makes durable what is read
	if readOnly {
		config.Sync = syncReadOnly
	}
	left, err := journal.Read(e.path, config, e.file.mergedGeneration())
	if errors.Is(err, fs.ErrNotExist) {
		return e.file.state, nil
	}
	if err != nil {
		return storeState{}, journalError(err)
	}
	for _, j := range left.Batches {
		b, file, err := fromJournal(j)
		if err == nil && file > e.file.state.version {
			err = fmt.Errorf("%w: it lay beside a file with version %d, this one has %d", journal.ErrForeign, file, e.file.state.version)
		}
		if err != nil {
			return storeState{}, journalError(fmt.Errorf("read journal %s: %w", e.path, err))
		}
		e.active.apply(b)
	}
	state := e.file.state
	if len(left.Batches) > 0 && e.active.state.version > state.version {
		state = e.active.state
	}
	if readOnly {
		return state, e.lieOver()
	}
	if len(left.Batches) > 0 {
		err := e.mergeAll(left.Generation)
		if errors.Is(err, errNoSpace) {
			err = fmt.Errorf("%w: merge what the journal holds: %w", ErrFull, err)
		}
		if err != nil {
			return storeState{}, err
		}
	}
	e.active = newOverlay()
	e.records.Store(e.file.records.Load())
	e.bytes.Store(e.file.bytes.Load())
	return e.file.state, removeJournal(e.path)
}

// lieOver steps back for records that the file has newer, after a direct commit,
// and adds to the totals what the others change.
func (e *journalEngine) lieOver() error {
	for key, entry := range e.active.entries {
		err := e.file.get([]byte(key), func(old []byte) error {
			if headOf(old).version > entry.version {
				e.active.entries[key] = overlayEntry{version: entry.version, inFile: true}
				return nil
			}
			e.count(&batch{changes: []change{{key: []byte(key), enc: entry.enc, oldSize: len(old)}}})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// journalError gives the journal's errors their meaning here.
func journalError(err error) error {
	switch {
	case errors.Is(err, journal.ErrCorrupt):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case errors.Is(err, journal.ErrFormat):
		return fmt.Errorf("%w: %w", ErrFormat, err)
	case errors.Is(err, journal.ErrForeign):
		return fmt.Errorf("%w: %w: put back the file that belongs to the journal, or move the journal away to give up what only it holds", ErrJournal, err)
	}
	return err
}

// journalBatch is the batch as the journal keeps it, beside a file whose highest
// version is the given one.
func (b *batch) journalBatch(file uint64) journal.Batch {
	j := journal.Batch{State: encodeJournalState(file, b.state, b.ledger), Entries: make([]journal.Entry, len(b.changes))}
	for i, c := range b.changes {
		j.Entries[i] = journal.Entry{Key: c.key, Version: c.version, Value: c.enc, Mark: c.fresh}
	}
	return j
}

func fromJournal(j journal.Batch) (b *batch, file uint64, err error) {
	b = &batch{changes: make([]change, len(j.Entries))}
	for i, e := range j.Entries {
		b.changes[i] = change{key: e.Key, enc: e.Value, version: e.Version, fresh: e.Mark}
	}
	file, b.state, b.ledger, err = decodeJournalState(j.State)
	return b, file, err
}

// encodeJournalState is 8 bytes version of the file, 4 bytes length of the state,
// the state, and the ledger as JSON if there is one.
func encodeJournalState(file uint64, s storeState, l ledgerBatch) []byte {
	state := s.encode()
	b := binary.BigEndian.AppendUint64(nil, file)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(state))), state...)
	if l.empty() {
		return b
	}
	enc, err := json.Marshal(l.portable())
	if err != nil {
		return b // counts are best effort
	}
	return append(b, enc...)
}

func decodeJournalState(b []byte) (file uint64, s storeState, l ledgerBatch, err error) {
	const fixed = 8 + 4
	if len(b) < fixed || int64(binary.BigEndian.Uint32(b[8:])) > int64(len(b)-fixed) {
		return 0, s, l, fmt.Errorf("%w: the state of a journal's batch", ErrCorrupt)
	}
	file = binary.BigEndian.Uint64(b)
	end := fixed + int(binary.BigEndian.Uint32(b[8:]))
	s, err = decodeStoreState(b[fixed:end])
	if err != nil || end == len(b) {
		return file, s, l, err
	}
	var p portableLedger
	if err := json.Unmarshal(b[end:], &p); err != nil {
		return file, s, l, fmt.Errorf("%w: the counts of a journal's batch: %w", ErrCorrupt, err)
	}
	return file, s, p.batch(), nil
}

// portableLedger is a ledgerBatch in JSON.
type portableLedger struct {
	Notes map[string][]byte    `json:"notes,omitempty"` // by the key's text form
	Hours map[int64]hourCounts `json:"hours,omitempty"`
}

func (b ledgerBatch) portable() portableLedger {
	p := portableLedger{Notes: make(map[string][]byte, len(b.notes)), Hours: b.hours}
	for key, n := range b.notes {
		p.Notes[key.String()] = n.encode()
	}
	return p
}

func (p portableLedger) batch() ledgerBatch {
	b := ledgerBatch{notes: make(map[Key]note, len(p.Notes)), hours: p.Hours}
	for text, enc := range p.Notes {
		key, err := ParseKey(text)
		if n, noteErr := decodeNote(enc); err == nil && noteErr == nil {
			b.notes[key] = n
		}
	}
	return b
}
