package journal

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/idembolt/idem/internal/fileid"
)

// The header is written once, when the file is made.
//
//	 0  8  "idem-wal"
//	 8  4  format: 1
//	12  4  CRC-32C of the bytes from 16 to 48
//	16 16  id of the store
//	32  8  size of a segment
//	40  8  random; its CRC-32C is the seed of the batches' checksums
//
// Values come from outside, and lie in the segments as they are. Without the seed
// one could be made that is taken for a batch when the segment is used again.
const (
	headerSize    = 4096
	headerUsed    = 48
	headerMagic   = "idem-wal"
	formatVersion = 1
)

// Suffix is what a journal's name adds to that of its store.
const Suffix = "-wal"

// Create makes an empty journal at path that goes on after the merged
// generation. Nothing may be there. The file is complete and synced before it
// gets its name; the caller syncs the directory.
func Create(path string, c Config, merged uint64) (*Journal, error) {
	if c.SegmentBytes <= 0 || c.SegmentBytes%headerSize != 0 {
		return nil, fmt.Errorf("create journal %s: segment size %d is not a multiple of %d", path, c.SegmentBytes, headerSize)
	}
	c = c.withDefaults()
	var random [8]byte
	rand.Read(random[:])
	temporary := path + ".idem-new-" + hex.EncodeToString(random[:])
	defer os.Remove(temporary)
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(fill(f, &c), c.Sync(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	opened, err := fileid.Open(f)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Journal{file: f, opened: opened, path: path, config: c, generation: merged + 1}, nil
}

// fill writes the header and zeroes: a preallocated file whose blocks were never
// written would change its metadata with the first write to each.
func fill(f *os.File, c *Config) error {
	header := make([]byte, headerSize)
	copy(header, headerMagic)
	binary.BigEndian.PutUint32(header[8:], formatVersion)
	copy(header[16:], c.Store[:])
	binary.BigEndian.PutUint64(header[32:], uint64(c.SegmentBytes))
	rand.Read(header[40:headerUsed])
	c.seed = checksum(0, header[40:headerUsed])
	binary.BigEndian.PutUint32(header[12:], checksum(0, header[16:headerUsed]))
	if _, err := c.WriteAt(f, header, 0); err != nil {
		return err
	}
	end := headerSize + 2*c.SegmentBytes
	zeroes := make([]byte, min(end, 1<<20))
	for off := int64(headerSize); off < end; {
		n, err := c.WriteAt(f, zeroes[:min(end-off, int64(len(zeroes)))], off)
		if err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// readHeader checks the header and takes the segment size and the seed from it.
func readHeader(f *os.File, c *Config) error {
	header := make([]byte, headerUsed)
	if _, err := f.ReadAt(header, 0); err != nil {
		return fmt.Errorf("%w: header: %w", ErrCorrupt, err)
	}
	if string(header[:8]) != headerMagic {
		return fmt.Errorf("%w: it is not a journal", ErrForeign)
	}
	if v := binary.BigEndian.Uint32(header[8:]); v != formatVersion {
		return fmt.Errorf("%w: %d, this build knows %d", ErrFormat, v, formatVersion)
	}
	if binary.BigEndian.Uint32(header[12:]) != checksum(0, header[16:]) {
		return fmt.Errorf("%w: header", ErrCorrupt)
	}
	if [16]byte(header[16:32]) != c.Store {
		return fmt.Errorf("%w: it names another store", ErrForeign)
	}
	c.SegmentBytes = int64(binary.BigEndian.Uint64(header[32:]))
	c.seed = checksum(0, header[40:])
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if c.SegmentBytes <= 0 || info.Size() != headerSize+2*c.SegmentBytes {
		return fmt.Errorf("%w: it has %d bytes, not %d and two segments of %d", ErrCorrupt, info.Size(), headerSize, c.SegmentBytes)
	}
	return nil
}
