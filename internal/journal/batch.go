package journal

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// Batch is what one append makes durable, all of it or nothing.
type Batch struct {
	// State is the caller's own, kept with the batch.
	State []byte
	// Entries are in the order in which they were made.
	Entries []Entry

	generation, sequence uint64
}

// Entry is the new content of one key.
type Entry struct {
	Key     []byte // at most 64 KiB
	Version uint64
	Value   []byte // nil: the key was removed
	Mark    bool   // the caller's own
}

// A batch on disk. Integers are big-endian; the rest of the last sector is zero.
//
//	 0  4  magic "idjb"
//	 4  4  length of the batch, this header included
//	 8  4  CRC-32C of the journal's seed and the bytes from 12 to the end
//	12  4  number of entries
//	16  8  generation of the segment
//	24  8  sequence number of the batch
//	32  4  length of the state
//	36     state, then per entry: 1 byte kind (1 put, 2 remove; 128 is added if
//	       it is marked), 2 bytes key length, 4 bytes value length, 8 bytes
//	       version, key, value
const (
	batchMagic      = 0x69646a62
	batchHeaderSize = 36
	entryHeaderSize = 15

	kindPut    = 1
	kindRemove = 2
	kindMark   = 128
)

// Size is the number of bytes that the batch takes in a segment.
func (b Batch) Size() int64 {
	n := int64(batchHeaderSize + len(b.State))
	for _, e := range b.Entries {
		n += int64(entryHeaderSize + len(e.Key) + len(e.Value))
	}
	return (n + sectorSize - 1) / sectorSize * sectorSize
}

// encode appends the batch, padded to whole sectors. buf must be empty.
func (b Batch) encode(buf []byte, seed uint32) []byte {
	buf = append(buf, make([]byte, batchHeaderSize)...)
	buf = append(buf, b.State...)
	for _, e := range b.Entries {
		kind := byte(kindPut)
		if e.Value == nil {
			kind = kindRemove
		}
		if e.Mark {
			kind |= kindMark
		}
		buf = append(buf, kind)
		buf = binary.BigEndian.AppendUint16(buf, uint16(len(e.Key)))
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(e.Value)))
		buf = binary.BigEndian.AppendUint64(buf, e.Version)
		buf = append(append(buf, e.Key...), e.Value...)
	}
	binary.BigEndian.PutUint32(buf, batchMagic)
	binary.BigEndian.PutUint32(buf[4:], uint32(len(buf)))
	binary.BigEndian.PutUint32(buf[12:], uint32(len(b.Entries)))
	binary.BigEndian.PutUint64(buf[16:], b.generation)
	binary.BigEndian.PutUint64(buf[24:], b.sequence)
	binary.BigEndian.PutUint32(buf[32:], uint32(len(b.State)))
	binary.BigEndian.PutUint32(buf[8:], checksum(seed, buf[12:]))
	if rest := len(buf) % sectorSize; rest != 0 {
		buf = append(buf, make([]byte, sectorSize-rest)...)
	}
	return buf
}

func checksum(seed uint32, b []byte) uint32 {
	return crc32.Update(seed, crc32.MakeTable(crc32.Castagnoli), b)
}

// decodeBatch reads the batch at the beginning of buf. It returns false for
// anything that encode cannot have written. The batch shares memory with buf.
// padded is the number of bytes it takes on disk.
func decodeBatch(buf []byte, seed uint32) (b Batch, padded int64, ok bool) {
	if len(buf) < batchHeaderSize || binary.BigEndian.Uint32(buf) != batchMagic {
		return Batch{}, 0, false
	}
	length := int64(binary.BigEndian.Uint32(buf[4:]))
	if length < batchHeaderSize || length > int64(len(buf)) || length > math.MaxInt32 {
		return Batch{}, 0, false
	}
	buf = buf[:length]
	if binary.BigEndian.Uint32(buf[8:]) != checksum(seed, buf[12:]) {
		return Batch{}, 0, false
	}
	b.generation, b.sequence = binary.BigEndian.Uint64(buf[16:]), binary.BigEndian.Uint64(buf[24:])
	rest := buf[batchHeaderSize:]
	var whole bool
	if b.State, rest, whole = cut(rest, uint64(binary.BigEndian.Uint32(buf[32:]))); !whole {
		return Batch{}, 0, false
	}
	for range binary.BigEndian.Uint32(buf[12:]) {
		var e Entry
		if e, rest, whole = decodeEntry(rest); !whole {
			return Batch{}, 0, false
		}
		b.Entries = append(b.Entries, e)
	}
	return b, (length + sectorSize - 1) / sectorSize * sectorSize, len(rest) == 0
}

func decodeEntry(buf []byte) (e Entry, rest []byte, ok bool) {
	if len(buf) < entryHeaderSize {
		return Entry{}, nil, false
	}
	kind := buf[0] &^ kindMark
	e.Mark = buf[0]&kindMark != 0
	keyLength, valueLength := binary.BigEndian.Uint16(buf[1:]), binary.BigEndian.Uint32(buf[3:])
	e.Version = binary.BigEndian.Uint64(buf[7:])
	if e.Key, rest, ok = cut(buf[entryHeaderSize:], uint64(keyLength)); !ok {
		return Entry{}, nil, false
	}
	if e.Value, rest, ok = cut(rest, uint64(valueLength)); !ok {
		return Entry{}, nil, false
	}
	if kind == kindRemove {
		e.Value = nil
	}
	return e, rest, kind == kindPut || kind == kindRemove && valueLength == 0
}

func cut(b []byte, n uint64) (head, tail []byte, ok bool) {
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}
