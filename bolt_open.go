package idem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/idembolt/idem/internal/fileid"
	"github.com/idembolt/idem/internal/flockinfo"
	"github.com/idembolt/idem/internal/pagewalk"
)

// OpenBoltStore opens the store at path and creates it if there is nothing. The
// directory must exist. It waits for the lock until ctx ends or
// BoltConfig.LockTimeout is over.
//
// Errors: *LockedError if another process holds the file, ErrNotIdem for a path
// that holds anything else (a symbolic link and an empty file included),
// ErrCorrupt and ErrFormat for a store that cannot be read, ErrInsecure if
// RequirePrivate is set, fs.ErrNotExist if ReadOnly is set and there is no file.
// In all of these cases the path is left as it was.
func OpenBoltStore(ctx context.Context, path string, c BoltConfig) (*BoltStore, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	giveUp := time.Now().Add(c.LockTimeout)
	for {
		s, err := tryOpen(path, c)
		if !errors.Is(err, errTryAgain) && !errors.Is(err, berrors.ErrTimeout) {
			return s, err
		}
		if !time.Now().Before(giveUp) {
			if errors.Is(err, errTryAgain) {
				return nil, fmt.Errorf("open %s: %w", path, err)
			}
			return nil, lockedError(path)
		}
		wait := 2*time.Millisecond + rand.N(10*time.Millisecond) // jitter: bbolt's own wait of 50 ms is neither fair nor stoppable
		if !pause(ctx, min(wait, time.Until(giveUp))) {
			return nil, fmt.Errorf("%w: %w", lockedError(path), ctx.Err())
		}
	}
}

// errTryAgain: the file was created, replaced or removed while it was opened.
var errTryAgain = errors.New("the file changed while it was opened")

func lockedError(path string) error {
	e := &LockedError{Path: path}
	if pid, ok := flockinfo.Holder(path); ok {
		e.PID, e.Command = pid, flockinfo.Command(pid)
	}
	return e
}

// tryOpen makes one attempt, without waiting.
func tryOpen(path string, c BoltConfig) (*BoltStore, error) {
	switch err := inspectPath(path); {
	case errors.Is(err, fs.ErrNotExist) && !c.ReadOnly:
		if err := createBolt(path, c.wall()); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	s := &BoltStore{path: path, config: c, incarnation: randomHex(16), cache: newCache(c.CacheBytes)}
	if err := s.open(); err != nil {
		if fault := (*faultError)(nil); s.db != nil && !errors.As(err, &fault) {
			_ = guarded(s.db.Close)
		}
		if s.handle != nil {
			_ = abandon(s.handle)
		}
		return nil, err
	}
	return s, nil
}

// open locks and reads the file that inspectPath has found worth opening.
func (s *BoltStore) open() error {
	options := &bolt.Options{
		Timeout:        time.Millisecond, // exactly one try
		ReadOnly:       s.config.ReadOnly,
		NoFreelistSync: true, // also: opening writes nothing, so a foreign file stays untouched
		FreelistType:   bolt.FreelistMapType,
		OpenFile:       s.openFile,
	}
	if !s.config.Visitor && !s.config.ReadOnly {
		options.InitialMmapSize = initialMmapSize()
	}
	err := guarded(func() (err error) {
		s.db, err = bolt.Open(s.path, 0o600, options)
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return err
	case errors.Is(err, fs.ErrNotExist) && !s.config.ReadOnly:
		return errTryAgain
	case err != nil:
		return openError(s.path, err)
	}
	if s.opened, err = fileid.Open(s.handle); err != nil {
		return err
	}
	s.db.AllocSize = int(min(max(s.opened.Size/8, 1<<20), 16<<20)) // the file grows in steps of this size, each with a sync
	info, err := s.handle.Stat()
	if err != nil {
		return err
	}
	s.mode = info.Mode().Perm()
	if s.checkIdentity() != nil {
		return errTryAgain
	}
	if err := s.checkMode(); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return openError(s.path, err)
	}
	return nil
}

// openFile opens the file for bbolt, which goes on with the lock that is taken
// here already: what follows must not be done to a file that others write to.
func (s *BoltStore) openFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag&^os.O_CREATE|openNoFollow, mode)
	if err != nil {
		return nil, err
	}
	s.handle = f
	if s.config.ReadOnly {
		return f, nil
	}
	locked, err := tryLock(f)
	if err == nil && locked {
		err = checkFreePages(f)
	}
	return f, err
}

// checkFreePages makes sure that bbolt can find the free pages of a file whose
// last service was killed: they are not stored then, and bbolt looks for them in
// a goroutine of its own, where a damaged page would end the process.
func checkFreePages(f *os.File) error {
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	meta, err := pagewalk.ReadMeta(f, math.MaxUint64)
	if err != nil || meta.HasFreelist() {
		return nil //nolint:nilerror // bbolt says what is wrong with the header
	}
	var found error
	_, err = pagewalk.Walk(f, stat.Size(), meta, func(p pagewalk.Problem) bool {
		found = fmt.Errorf("%w: %w", ErrCorrupt, p)
		return false
	})
	return errors.Join(err, found)
}

// initialMmapSize maps so much address space that a slow reader practically
// never stands in the way of a growing file. Windows would make the file that
// large, and 32-bit systems do not have the space.
func initialMmapSize() int {
	if strconv.IntSize < 64 || runtime.GOOS == "windows" {
		return 0
	}
	return 1 << 30
}

// load reads what the file says about itself and starts the store.
func (s *BoltStore) load() error {
	var state storeState
	var id int64
	err := guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) (err error) {
			id = int64(tx.ID())
			s.file, state, err = readMeta(tx)
			if size := s.opened.Size; err == nil && size < tx.Size() {
				err = fmt.Errorf("%w: the file is cut short, %d bytes of %d are there", ErrCorrupt, size, tx.Size())
			}
			return err
		})
	})
	if err == nil {
		// The last holder may have died between writing a commit and syncing it,
		// or between giving the file its name and syncing that.
		err = s.syncFile()
	}
	if err == nil && !s.config.ReadOnly {
		err = s.prepareToWrite()
	}
	if err != nil {
		return err
	}
	if s.engine, state, err = s.openEngine(newBoltEngine(s.db, s.handle, id, state)); err != nil {
		return err
	}
	if s.config.engine != nil {
		s.engine = s.config.engine(s.engine)
	}
	s.clock = newStoreClock(s.config.wall(), state, s.config.Grace, s.config.Visitor)
	if !s.config.ReadOnly {
		s.writer = newWriter(s, state)
	}
	return nil
}

// prepareToWrite brings a file that was opened for writing into order.
func (s *BoltStore) prepareToWrite() error {
	// An empty transaction, rolled back, makes bbolt count its free pages.
	err := guarded(func() error {
		tx, err := s.db.Begin(true)
		if err != nil {
			return err
		}
		return tx.Rollback()
	})
	if err != nil {
		return err
	}
	if s.config.Visitor {
		s.db.NoFreelistSync = false // so that closing needs no commit of its own
	} else {
		removeLeftovers(s.path)
	}
	return nil
}

// syncFile makes what was read from the file, and its name, durable. A reader
// does so where its handle allows it.
func (s *BoltStore) syncFile() error {
	if s.config.ReadOnly {
		return syncReadOnly(s.handle)
	}
	err := s.db.Sync()
	if err == nil && !s.config.Visitor {
		err = syncDir(filepath.Dir(s.path))
	}
	return err
}

// checkMode refuses a file that other users can read or write, if asked to.
func (s *BoltStore) checkMode() error {
	if s.config.RequirePrivate && s.wideMode() {
		return fmt.Errorf("%w: %s has mode %04o, make it 0600", ErrInsecure, s.path, s.mode)
	}
	return nil
}

func (s *BoltStore) wideMode() bool {
	return runtime.GOOS != "windows" && s.mode&0o077 != 0
}
