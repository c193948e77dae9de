package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// dbPath is the path of the store: --db, else $IDEM_DB, else the user's own one.
// named says that it was chosen, not just the default.
func (a *app) dbPath() (path string, named bool, err error) {
	if a.flags.db != "" {
		return a.flags.db, true, nil
	}
	if path := a.getenv("IDEM_DB"); path != "" {
		return path, true, nil
	}
	state := a.getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the XDG rules say to ignore a relative one
		home := a.getenv("HOME")
		if home == "" {
			if home, err = os.UserHomeDir(); err != nil {
				return "", false, fail(exitUsage, "--db PATH", "no store is named and there is no home directory to look in")
			}
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "idem", "idem.db"), false, nil
}

// writePath is dbPath for commands that may create the store. It makes the
// directory of the default one. code is the exit code if there is no directory to
// create it in.
func (a *app) writePath(code int) (string, error) {
	path, named, err := a.dbPath()
	if err != nil {
		return path, err
	}
	if named {
		return path, missingDir(path, code)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make the directory of the default store: %w", err)
	}
	return path, nil
}

// boltConfig is how every command opens the file.
func (a *app) boltConfig() idem.BoltConfig {
	c := idem.BoltConfig{LockTimeout: a.flags.lockTimeout, CacheBytes: -1}
	if c.LockTimeout == 0 {
		c.LockTimeout = -1 // once; its own 0 is a default
	}
	return c
}

// openRead opens the store for reading, under a shared lock. It sees what a
// service would see: what ran out while that was down still counts for a while.
func (a *app) openRead(ctx context.Context) (*idem.BoltStore, error) {
	c := a.boltConfig()
	c.ReadOnly = true
	return a.openExisting(ctx, c)
}

// openWrite opens the store for changing what is there. It creates nothing.
func (a *app) openWrite(ctx context.Context) (*idem.BoltStore, error) {
	c := a.boltConfig()
	c.Visitor = true
	return a.openExisting(ctx, c)
}

func (a *app) openExisting(ctx context.Context, c idem.BoltConfig) (*idem.BoltStore, error) {
	path, named, err := a.existingPath()
	if err != nil {
		return nil, err
	}
	s, err := idem.OpenBoltStore(ctx, path, c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingStore(path, named)
	}
	return s, err
}

// existingPath is dbPath for commands that create nothing.
func (a *app) existingPath() (path string, named bool, err error) {
	path, named, err = a.dbPath()
	if err != nil {
		return path, named, err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return path, named, missingStore(path, named)
	}
	return path, named, nil
}

// missingDir is the error for a store in a directory that does not exist, else
// nil. A directory that was named is not made: the name may be wrong.
func missingDir(path string, code int) error {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fail(code, "mkdir -p "+render.ShellQuote(dir), "no store at %s: there is no directory %s: create it first", path, dir)
}

func missingStore(path string, named bool) error {
	if named {
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return fail(exitFailure, "", "no store at %s: there is no directory %s", path, filepath.Dir(path))
		}
		return fail(exitFailure, "", "no store at %s: there is no such file", path)
	}
	return fail(exitFailure, "idemctl --db PATH, or set IDEM_DB", "no store at %s yet: the first idemctl run makes it", path)
}

const (
	// What is read in one opening of the file is bounded by time and by a number
	// of records, which begins small: a list is often only looked at.
	firstPage = 512
	largePage = 16384
	pageTime  = 200 * time.Millisecond
	// yieldTime is how long the file is left to others between two openings:
	// they look every few milliseconds.
	yieldTime = 20 * time.Millisecond
)

// reader reads a store without standing in the way of those who write: it
// holds the file only while it reads a page of records, never while the caller
// prints them. A pager at the other end of a pipe would block a service.
type reader struct {
	app     *app
	info    idem.BoltInfo // at the first opening
	details bool          // sum up the values that a query does not omit, and keep none
}

// newReader opens the file once, to learn what it is.
func (a *app) newReader(ctx context.Context) (*reader, error) {
	r := &reader{app: a}
	err := r.with(ctx, func(s *idem.BoltStore) (err error) {
		r.info, err = s.Info(ctx)
		return err
	})
	return r, err
}

func (r *reader) with(ctx context.Context, fn func(*idem.BoltStore) error) error {
	s, err := r.app.openRead(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Close())
}

// now is the time that ages are reckoned from.
func (r *reader) now() time.Time { return r.info.Now }

// entries yields the records that q selects, in key order, judged as they were
// when they were read. A record that cannot be read is yielded as damaged. An
// error ends the sequence.
func (r *reader) entries(ctx context.Context, q idem.Query) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for size := firstPage; ; size = min(4*size, largePage) {
			page, more, err := r.page(ctx, q, size)
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(entry{}, err)
				return
			}
			if !more {
				return
			}
			q.After = page[len(page)-1].Key.String()
			if !sleep(ctx, yieldTime) {
				yield(entry{}, context.Cause(ctx))
				return
			}
		}
	}
}

// page reads records until one of the bounds is reached; more says that it was.
func (r *reader) page(ctx context.Context, q idem.Query, size int) (page []entry, more bool, err error) {
	err = r.with(ctx, func(s *idem.BoltStore) error {
		judge, began := newJudge(s, r.info), time.Now()
		for rec, err := range s.Scan(ctx, q) {
			if err != nil && rec.Key == (idem.Key{}) {
				return err
			}
			e := judge.entry(ctx, rec, err)
			if r.details {
				e.summary, e.Value = briefly(&e, judge.now), nil
			}
			page = append(page, e)
			// Not after a damaged record, whose key may be none to go on from.
			if more = err == nil && (len(page) >= size || time.Since(began) > pageTime); more {
				return nil
			}
		}
		return nil
	})
	return page, more, err
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
