// Package pagewalk checks the page structure of a bbolt file by reading it, not
// by mapping it. bbolt's own check, and the walk it makes when it opens a file
// without a stored freelist, run in goroutines of their own and end the process
// when they meet a page that makes no sense or lies behind the end of the file,
// and never end when pages form a circle. This walk returns what is wrong.
package pagewalk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
)

// Sizes and flags of bbolt's format, version 2. Integers are in the byte order
// of the machine that wrote the file.
const (
	pageHeaderSize   = 16
	elementSize      = 16 // of branch and leaf pages alike
	bucketHeaderSize = 16
	metaSize         = 64

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10
	bucketLeaf   = 0x01

	magic      = 0xED0CDAED
	noFreelist = ^uint64(0)
)

// ErrNoMeta is returned when neither header page of the file is valid.
var ErrNoMeta = errors.New("no valid header page")

// Meta is what a header page says.
type Meta struct {
	PageSize int64
	Root     uint64 // page of the root bucket
	Freelist uint64 // page of the freelist
	Pages    uint64 // number of pages in use
	TxID     uint64
}

// HasFreelist reports whether the freelist is stored in the file.
func (m Meta) HasFreelist() bool { return m.Freelist != noFreelist }

// ReadMeta returns the valid header of the highest transaction not above limit.
func ReadMeta(r io.ReaderAt, limit uint64) (Meta, error) {
	var best Meta
	found := false
	try := func(offset int64) (Meta, bool) {
		m, ok := readMetaAt(r, offset)
		if ok && m.TxID <= limit && (!found || m.TxID > best.TxID) {
			best, found = m, true
		}
		return m, ok
	}
	if m, ok := try(0); ok {
		try(m.PageSize)
	} else {
		for size := int64(1 << 10); size <= 64<<10; size <<= 1 {
			if m, ok := readMetaAt(r, size); ok && m.PageSize == size {
				try(size)
			}
		}
	}
	if !found {
		return Meta{}, ErrNoMeta
	}
	return best, nil
}

func readMetaAt(r io.ReaderAt, offset int64) (Meta, bool) {
	b := make([]byte, pageHeaderSize+metaSize)
	if _, err := r.ReadAt(b, offset); err != nil {
		return Meta{}, false
	}
	b = b[pageHeaderSize:]
	sum := fnv.New64a()
	sum.Write(b[:metaSize-8])
	if u32(b) != magic || u32(b[4:]) != 2 || u64(b[56:]) != sum.Sum64() {
		return Meta{}, false
	}
	m := Meta{PageSize: int64(u32(b[8:])), Root: u64(b[16:]), Freelist: u64(b[32:]), Pages: u64(b[40:]), TxID: u64(b[48:])}
	return m, m.PageSize >= 512 && m.PageSize <= 64<<10
}

func u16(b []byte) uint16 { return binary.NativeEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// Problem is one thing that is wrong with the pages of a file.
type Problem struct {
	Page   uint64
	Detail string
}

// Error says it in one line.
func (p Problem) Error() string { return fmt.Sprintf("page %d: %s", p.Page, p.Detail) }

// Walk visits every page that can be reached from the header, each once, and
// calls report for each problem until it returns false. It returns the number of
// pages reached. The error says why the file, which has size bytes, could not be
// read. While a transaction with the header's id is open the pages do not change
// under it.
func Walk(r io.ReaderAt, size int64, m Meta, report func(Problem) bool) (int, error) {
	if m.Pages > uint64(size/m.PageSize) {
		report(Problem{m.Pages - 1, fmt.Sprintf("it lies behind the end of the file, which was cut short: %d bytes of %d are there", size, m.Pages*uint64(m.PageSize))})
		return 0, nil
	}
	w := &walker{r: r, meta: m, seen: make([]bool, m.Pages), report: report}
	err := w.bucket(m.Root)
	if err == nil && m.HasFreelist() {
		err = w.freelist()
	}
	if errors.Is(err, errStop) {
		err = nil
	}
	return w.reached, err
}

var errStop = errors.New("stop")

type walker struct {
	r       io.ReaderAt
	meta    Meta
	seen    []bool
	reached int
	report  func(Problem) bool
	buf     []byte
}

func (w *walker) problem(page uint64, format string, args ...any) error {
	if w.report(Problem{page, fmt.Sprintf(format, args...)}) {
		return nil
	}
	return errStop
}

// bucket walks the tree of one bucket. An explicit stack, because a damaged file
// can nest as deep as it has pages.
func (w *walker) bucket(root uint64) error {
	for todo := []uint64{root}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		page, err := w.page(id)
		if err != nil {
			return err
		}
		if page == nil {
			continue
		}
		children, err := w.children(id, page)
		if err != nil {
			return err
		}
		todo = append(todo, children...)
	}
	return nil
}

// page reads a page that is reached for the first time, with its overflow. It
// returns nil after reporting what is wrong with it.
func (w *walker) page(id uint64) ([]byte, error) {
	if id < 2 || id >= w.meta.Pages {
		return nil, w.problem(id, "it is out of bounds: 2 to %d are in use", w.meta.Pages-1)
	}
	page, err := w.read(id, 1)
	if err != nil {
		return nil, w.unreadable(id, err)
	}
	if u64(page) != id {
		return nil, w.problem(id, "it says that it is page %d", u64(page))
	}
	last := id + uint64(u32(page[12:]))
	if last >= w.meta.Pages {
		return nil, w.problem(id, "it goes on to page %d, %d are in use", last, w.meta.Pages)
	}
	for p := id; p <= last; p++ {
		if w.seen[p] {
			return nil, w.problem(p, "it is reached twice")
		}
		w.seen[p] = true
		w.reached++
	}
	if last > id {
		if page, err = w.read(id, int64(last-id)+1); err != nil {
			return nil, w.unreadable(id, err)
		}
	}
	return page, nil
}

// read returns pages that stay valid until the next call.
func (w *walker) read(id uint64, pages int64) ([]byte, error) {
	w.buf = slices.Grow(w.buf[:0], int(pages*w.meta.PageSize))[:pages*w.meta.PageSize]
	_, err := w.r.ReadAt(w.buf, int64(id)*w.meta.PageSize)
	return w.buf, err
}

// unreadable tells the end of the file from a failure to read it.
func (w *walker) unreadable(id uint64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return w.problem(id, "it lies behind the end of the file")
	}
	return err
}

// children checks the elements of a page and returns the pages they lead to:
// those below a branch, and the roots of buckets in a leaf.
func (w *walker) children(id uint64, page []byte) ([]uint64, error) {
	kind, count := u16(page[8:]), int(u16(page[10:]))
	if kind != flagBranch && kind != flagLeaf {
		return nil, w.problem(id, "its type is %#x, neither branch nor leaf", kind)
	}
	if pageHeaderSize+count*elementSize > len(page) || kind == flagBranch && count == 0 {
		return nil, w.problem(id, "it cannot have %d elements", count)
	}
	var children []uint64
	for i := range count {
		offset := pageHeaderSize + i*elementSize
		element := page[offset:]
		if kind == flagBranch {
			if !fits(page, offset, u32(element), u32(element[4:]), 0) {
				return nil, w.problem(id, "element %d lies outside of it", i)
			}
			children = append(children, u64(element[8:]))
			continue
		}
		position, keySize, valueSize := u32(element[4:]), u32(element[8:]), u32(element[12:])
		if !fits(page, offset, position, keySize, valueSize) {
			return nil, w.problem(id, "element %d lies outside of it", i)
		}
		if u32(element)&bucketLeaf == 0 {
			continue
		}
		value := page[offset+int(position)+int(keySize):][:valueSize]
		if len(value) < bucketHeaderSize {
			return nil, w.problem(id, "element %d is too short for a bucket", i)
		}
		if root := u64(value); root != 0 {
			children = append(children, root)
		} else if err := w.inline(id, value[bucketHeaderSize:]); err != nil {
			return nil, err
		}
	}
	return children, nil
}

// inline checks a small bucket that is kept as a leaf page within an element.
func (w *walker) inline(id uint64, page []byte) error {
	if len(page) < pageHeaderSize || u16(page[8:]) != flagLeaf {
		return w.problem(id, "a bucket within it is not a leaf")
	}
	children, err := w.children(id, page)
	if err == nil && len(children) > 0 {
		return w.problem(id, "a bucket within it holds buckets")
	}
	return err
}

func fits(page []byte, offset int, position, keySize, valueSize uint32) bool {
	return uint64(offset)+uint64(position)+uint64(keySize)+uint64(valueSize) <= uint64(len(page)) && position >= elementSize
}

// freelist checks that the free pages and the reached ones are all there are.
func (w *walker) freelist() error {
	page, err := w.page(w.meta.Freelist)
	if err != nil || page == nil {
		return err
	}
	count, ids := uint64(u16(page[10:])), page[pageHeaderSize:]
	if count == 0xFFFF { // the count did not fit into its field
		count, ids = u64(ids), ids[8:]
	}
	if u16(page[8:]) != flagFreelist || count > uint64(len(ids)/8) {
		return w.problem(w.meta.Freelist, "it is not a freelist of %d pages", count)
	}
	for i := range count {
		id := u64(ids[8*i:])
		if id < 2 || id >= w.meta.Pages || w.seen[id] {
			if err := w.problem(id, "it is on the freelist, but is in use or out of bounds"); err != nil {
				return err
			}
			continue
		}
		w.seen[id] = true
	}
	for id := uint64(2); id < uint64(len(w.seen)); id++ {
		if !w.seen[id] {
			if err := w.problem(id, "it is neither reached nor free"); err != nil {
				return err
			}
		}
	}
	return nil
}
