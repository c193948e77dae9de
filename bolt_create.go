package idem

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/idembolt/idem/internal/journal"
)

// fileFormat is the format of the file as a whole; see docs/format.md.
const fileFormat = 1

// fileMeta is what a file says about itself, once and for all.
type fileMeta struct {
	id      [16]byte
	secret  []byte
	created time.Time
}

// boltMagic is bbolt's, in the byte order of the machine that wrote the file,
// 16 bytes into a meta page.
const boltMagic = 0xED0CDAED

// inspectPath looks at what is at path without opening it as a database, since
// that would create, fill or lock things that are not ours.
func inspectPath(path string) error {
	refuse := func(what string) error { return fmt.Errorf("%w: %s is %s", ErrNotIdem, path, what) }
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse("a symbolic link: name the file itself")
	case info.IsDir():
		return refuse("a directory")
	case !info.Mode().IsRegular():
		return refuse("not a regular file")
	case info.Size() == 0:
		return refuse("empty, which a store never is: restore it, or remove it to begin anew")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head, err := readHead(f, 4<<10)
	if err != nil || hasBoltMagic(head) {
		return err
	}
	// The second meta page, for page sizes up to 64 KiB, and the page with our
	// bucket names, to tell a damaged store from something else.
	if head, err = readHead(f, 512<<10); err != nil || hasBoltMagic(head) {
		return err
	}
	if bytes.Contains(head, bucketRecords) {
		return fmt.Errorf("open %s: %w: both of its header pages are damaged", path, ErrCorrupt)
	}
	return refuse("something else")
}

// readHead reads the first n bytes of the file, or all if it is shorter.
func readHead(f *os.File, n int) ([]byte, error) {
	head := make([]byte, n)
	n, err := f.ReadAt(head, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head[:n], err
}

func hasBoltMagic(head []byte) bool {
	at := func(off int) bool {
		return len(head) >= off+4 && binary.NativeEndian.Uint32(head[off:]) == boltMagic
	}
	if at(16) {
		return true
	}
	for size := 1 << 10; size <= 64<<10; size <<= 1 {
		if at(size + 16) {
			return true
		}
	}
	return false
}

// createBolt makes a new store so that at no time a half-made file has the
// name: it is made under another one, synced, and then given its own, which
// fails if somebody else was faster. That is not an error.
func createBolt(path string, now time.Time) error {
	temporary := path + temporaryInfix + randomHex(8)
	defer os.Remove(temporary)
	db, err := bolt.Open(temporary, 0o600, &bolt.Options{
		Timeout: time.Millisecond, FreelistType: bolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			return os.OpenFile(name, flag|os.O_EXCL, mode)
		},
	})
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		err = fmt.Errorf("directory %s: %w", filepath.Dir(path), at.Err) // the temporary name says nothing to anybody
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	err = errors.Join(db.Update(func(tx *bolt.Tx) error { return writeMeta(tx, now) }), db.Close())
	if err == nil {
		err = giveName(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return nil
}

// giveName renames without replacing, where the file system can, and makes the
// new name durable.
func giveName(temporary, path string) error {
	err := os.Link(temporary, path)
	switch {
	case errors.Is(err, fs.ErrExist):
		// somebody was faster, and may not have come to syncing the name yet
	case errors.Is(err, fs.ErrNotExist):
		return nil // another process has opened the store and cleared our file away
	case err != nil: // no hard links here (FAT): the rename may replace a store made just now, which its holder will notice
		if err = os.Rename(temporary, path); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}

// temporaryInfix and 16 hexadecimal digits name the file while it is made.
const temporaryInfix = ".idem-new-"

// removeLeftovers clears away what creations that were cut short have left, best
// effort. The caller holds the real file, so nobody needs them.
func removeLeftovers(path string) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, _ := strings.CutPrefix(e.Name(), base)
		rest = strings.TrimPrefix(rest, journal.Suffix)
		if random, found := strings.CutPrefix(rest, temporaryInfix); found && len(random) == 16 && strings.HasPrefix(e.Name(), base) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func writeMeta(tx *bolt.Tx, now time.Time) error {
	for _, name := range [][]byte{bucketMeta, bucketRecords, bucketExpiry, bucketNotes, bucketHistory} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	random := make([]byte, 48)
	rand.Read(random)
	meta := tx.Bucket(bucketMeta)
	return errors.Join(
		meta.Put(metaFormat, binary.BigEndian.AppendUint32(nil, fileFormat)),
		meta.Put(metaID, random[:16]),
		meta.Put(metaSecret, random[16:]),
		meta.Put(metaCreated, binary.BigEndian.AppendUint64(nil, uint64(toMicros(now)))),
		meta.Put(metaState, storeState{clock: now}.encode()),
	)
}

// readMeta returns ErrNotIdem for another application's bbolt file, ErrFormat
// for a store of a later build.
func readMeta(tx *bolt.Tx) (fileMeta, storeState, error) {
	bad := func(what string) (fileMeta, storeState, error) {
		return fileMeta{}, storeState{}, fmt.Errorf("%w: %s", ErrCorrupt, what)
	}
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return fileMeta{}, storeState{}, fmt.Errorf("%w: it is another application's bbolt file", ErrNotIdem)
	}
	format := meta.Get(metaFormat)
	if len(format) != 4 {
		return bad("its format is missing")
	}
	if v := binary.BigEndian.Uint32(format); v != fileFormat {
		return fileMeta{}, storeState{}, fmt.Errorf("%w: the file has format %d, this build knows %d", ErrFormat, v, fileFormat)
	}
	for _, name := range [][]byte{bucketRecords, bucketExpiry, bucketNotes, bucketHistory} {
		if tx.Bucket(name) == nil {
			return bad(fmt.Sprintf("bucket %s is missing", name))
		}
	}
	id, secret, created := meta.Get(metaID), meta.Get(metaSecret), meta.Get(metaCreated)
	if len(id) != 16 || len(secret) != 32 || len(created) != 8 {
		return bad("its identity is missing")
	}
	m := fileMeta{id: [16]byte(id), secret: bytes.Clone(secret), created: fromMicros(int64(binary.BigEndian.Uint64(created)))}
	state, err := decodeStoreState(meta.Get(metaState))
	return m, state, err
}
