package main

import (
	"errors"
	"os"
	"path/filepath"
)

// rawLimit is no store but what the disk allows: claims and results written one
// after the other into a file whose blocks are there already, each group with one
// write and one fdatasync. A lone caller is a group of one; many callers are
// grouped as well as could be, all of them in every write.
type rawLimit struct {
	file   *os.File
	offset int64
	buf    []byte
}

const (
	rawFileBytes   = 16 << 20
	rawHeaderBytes = 20 // lengths and a checksum, about what a log needs
)

func (s *rawLimit) Setup(t target) (err error) {
	if s.file, err = os.Create(filepath.Join(t.Dir, "raw")); err != nil {
		return err
	}
	// Written, not only allocated: the first write to an allocated block also
	// changes metadata, and fdatasync would have to write it.
	if _, err := s.file.Write(make([]byte, rawFileBytes)); err != nil {
		return err
	}
	return s.file.Sync()
}

func (s *rawLimit) DoGroup(callers int) error {
	for _, size := range []int{claimBytes, resultBytes} {
		if err := s.append(callers * (rawHeaderBytes + keyBytes + size)); err != nil {
			return err
		}
	}
	return nil
}

func (s *rawLimit) append(size int) error {
	if cap(s.buf) < size {
		s.buf = make([]byte, size)
	}
	if s.offset+int64(size) > rawFileBytes {
		s.offset = 0
	}
	n, err := s.file.WriteAt(s.buf[:size], s.offset)
	s.offset += int64(n)
	if err != nil {
		return err
	}
	return syncData(s.file)
}

func (s *rawLimit) Do(string, []byte, []byte) error { return s.DoGroup(1) }

func (s *rawLimit) Read(string) ([]byte, error) { return nil, errors.ErrUnsupported }

func (s *rawLimit) Close() error { return s.file.Close() }
