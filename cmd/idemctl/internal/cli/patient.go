package cli

import (
	"context"
	"errors"
	"time"

	"github.com/idembolt/idem"
)

const (
	// looksPerTimeout is how often the holder of a locked file is looked up
	// before it counts as one that does not let go. Often nobody is found: the
	// file has just been released. Many looks in a row must find the same.
	looksPerTimeout = 20
	// busyLimit is how much longer than --lock-timeout a call waits for a file
	// that is only busy.
	busyLimit = time.Minute
)

// patientStore tells a file that is held from one that is busy: --lock-timeout
// is over when one and the same process has been seen holding it for so long.
// Many runs at once each hold it for a few milliseconds; they form no queue, so
// that any one of them may find it taken for seconds although it never is.
type patientStore struct {
	*idem.TransientStore
	timeout time.Duration
}

// openPatient is idem.OpenTransient with the waiting of a patientStore.
func openPatient(ctx context.Context, path string, c idem.BoltConfig) (*patientStore, error) {
	s := &patientStore{timeout: c.LockTimeout} // negative: try once
	if c.LockTimeout > 0 {
		c.LockTimeout = max(c.LockTimeout/looksPerTimeout, 1) // 0 would be a default
	}
	err := s.wait(ctx, func() (err error) {
		s.TransientStore, err = idem.OpenTransient(ctx, path, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// wait repeats a call that fails only because the file is locked.
func (s *patientStore) wait(ctx context.Context, call func() error) error {
	began := time.Now()
	since, holder := began, -1
	for {
		err := call()
		var locked *idem.LockedError
		if !errors.As(err, &locked) || ctx.Err() != nil {
			return err
		}
		if holder != -1 && locked.PID != holder {
			since = time.Now()
		}
		holder = locked.PID
		if time.Since(since) >= s.timeout || time.Since(began) > s.timeout+busyLimit {
			return err
		}
	}
}

// Get implements idem.Store.
func (s *patientStore) Get(ctx context.Context, key idem.Key) (rec idem.Record, err error) {
	err = s.wait(ctx, func() (err error) {
		rec, err = s.TransientStore.Get(ctx, key)
		return err
	})
	return rec, err
}

// Create implements idem.Store.
func (s *patientStore) Create(ctx context.Context, rec idem.Record) (stored idem.Record, err error) {
	err = s.wait(ctx, func() (err error) {
		stored, err = s.TransientStore.Create(ctx, rec)
		return err
	})
	return stored, err
}

// Swap implements idem.Store.
func (s *patientStore) Swap(ctx context.Context, version uint64, rec idem.Record) (stored idem.Record, err error) {
	err = s.wait(ctx, func() (err error) {
		stored, err = s.TransientStore.Swap(ctx, version, rec)
		return err
	})
	return stored, err
}

// Delete implements idem.Store.
func (s *patientStore) Delete(ctx context.Context, key idem.Key, version uint64) error {
	return s.wait(ctx, func() error { return s.TransientStore.Delete(ctx, key, version) })
}
