package journal

import (
	"fmt"
	"os"
)

// Recovered is what a journal holds that its store may lack.
type Recovered struct {
	// Batches are in the order in which they were appended.
	Batches []Batch
	// Generation is the highest generation found: when the batches are safely in
	// the store, it has merged up to here. The merged generation that was given
	// if there is none.
	Generation uint64
}

// segment is the readable part of one segment.
type segment struct {
	index      int
	generation uint64 // 0 if there is no batch
	batches    []Batch
	end        int64 // offset behind the last batch
}

// Read returns the batches of generations above merged, the last one that the
// store has safely merged. It writes nothing.
//
// It returns ErrForeign if the journal names another store, or if generations
// between merged and the first one found are missing: the store is older than
// the journal. It returns ErrCorrupt if batches that were synced cannot be read.
//
// The file is synced first, by c.Sync: its last batch may not have been.
func Read(path string, c Config, merged uint64) (Recovered, error) {
	c = c.withDefaults()
	f, err := os.Open(path)
	if err != nil {
		return Recovered{}, err
	}
	defer f.Close()
	if err := c.Sync(f); err != nil {
		return Recovered{}, fmt.Errorf("sync journal %s: %w", path, err)
	}
	segments, err := readSegments(f, &c, merged)
	if err != nil {
		return Recovered{}, fmt.Errorf("read journal %s: %w", path, err)
	}
	r, err := assemble(segments, merged)
	if err != nil {
		return Recovered{}, fmt.Errorf("read journal %s: %w", path, err)
	}
	return r, nil
}

// readSegments reads both segments, the older one first.
func readSegments(f *os.File, c *Config, merged uint64) ([2]segment, error) {
	var segments [2]segment
	if err := readHeader(f, c); err != nil {
		return segments, err
	}
	bufs := [2][]byte{}
	for i := range segments {
		buf := make([]byte, c.SegmentBytes)
		if _, err := f.ReadAt(buf, headerSize+int64(i)*c.SegmentBytes); err != nil {
			return segments, fmt.Errorf("%w: segment %d: %w", ErrCorrupt, i, err)
		}
		bufs[i] = buf
		segments[i] = parseSegment(i, buf, c.seed)
	}
	if segments[0].generation > segments[1].generation {
		segments[0], segments[1] = segments[1], segments[0]
	}
	for _, s := range segments {
		if err := s.checkTail(bufs[s.index], c.seed, segments[1].generation, merged); err != nil {
			return segments, err
		}
	}
	return segments, nil
}

// parseSegment reads batches of one generation and consecutive numbers from the
// beginning until one does not check out.
func parseSegment(index int, buf []byte, seed uint32) segment {
	s := segment{index: index}
	for s.end < int64(len(buf)) {
		b, size, ok := decodeBatch(buf[s.end:], seed)
		if !ok || len(s.batches) > 0 && (b.generation != s.generation || b.sequence != s.last()+1) {
			break
		}
		s.generation = b.generation
		s.batches = append(s.batches, b)
		s.end += size
	}
	return s
}

func (s *segment) last() uint64 { return s.batches[len(s.batches)-1].sequence }

// checkTail looks for batches behind the first one that did not check out. The
// next batch is written only when the one before it is synced, so such a batch
// proves that what came before it was whole once. Of the merged generations
// anything may be left: a segment is about to be used again then, and the torn
// first batch of its new generation may begin with old ones that are whole.
func (s *segment) checkTail(buf []byte, seed uint32, newest, merged uint64) error {
	proves := func(generation uint64) bool {
		if s.generation > merged {
			return generation == s.generation
		}
		return generation > merged && generation+1 >= newest
	}
	for off := s.end; off < int64(len(buf)); off += sectorSize {
		if b, _, ok := decodeBatch(buf[off:], seed); ok && proves(b.generation) {
			return fmt.Errorf("%w: a batch before byte %d of segment %d", ErrCorrupt, off, s.index)
		}
	}
	return nil
}

// assemble puts the batches above merged in order and checks that none is
// missing.
func assemble(segments [2]segment, merged uint64) (Recovered, error) {
	r := Recovered{Generation: merged}
	for _, s := range segments {
		if s.generation <= merged {
			continue
		}
		if s.generation != r.Generation+1 {
			return r, fmt.Errorf("%w: it goes on at generation %d, the store has merged up to %d", ErrForeign, s.generation, r.Generation)
		}
		if n := len(r.Batches); n > 0 && s.batches[0].sequence != r.Batches[n-1].sequence+1 {
			return r, fmt.Errorf("%w: batches between %d and %d are missing", ErrCorrupt, r.Batches[n-1].sequence, s.batches[0].sequence)
		}
		r.Batches = append(r.Batches, s.batches...)
		r.Generation = s.generation
	}
	return r, nil
}
