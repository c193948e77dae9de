package idem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// edgeStore is a store that the test closes.
func edgeStore(t testing.TB, c BoltConfig) (*BoltStore, string) {
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := OpenBoltStore(context.Background(), path, c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // of a poisoned one it may fail
	return s, path
}

// ctxProbe does something when it is asked for its error for the nth time.
type ctxProbe struct {
	context.Context
	calls int
	at    int
	do    func()
}

func (c *ctxProbe) Err() error {
	c.calls++
	if c.calls == c.at {
		c.do()
	}
	return c.Context.Err()
}

// TestTxPagedRangeIsChecked: pages of one range are read at different moments.
func TestTxPagedRangeIsChecked(t *testing.T) {
	s, _ := edgeStore(t, BoltConfig{})
	key := func(i int) []byte { return fmt.Appendf(nil, "%04d", i) }
	require.NoError(t, s.Update(t.Context(), func(tx *Tx) error {
		for i := range 300 {
			if err := tx.Bucket("b").Put(key(i), []byte{1}); err != nil {
				return err
			}
		}
		return nil
	}))
	runs := 0
	wrong := errors.New("the sum is wrong")
	err := s.Update(t.Context(), func(tx *Tx) error {
		runs++
		sum := 0
		for p, err := range tx.Bucket("b").Range(nil, nil) {
			if err != nil {
				return err
			}
			sum += int(p.Value[0])
			if sum == 10 && runs == 1 { // a transfer: the sum stays 300
				require.NoError(t, s.Update(t.Context(), func(tx *Tx) error {
					return errors.Join(tx.Bucket("b").Put(key(0), []byte{0}), tx.Bucket("b").Put(key(299), []byte{2}))
				}))
			}
		}
		if sum != 300 {
			return fmt.Errorf("%w: %d", wrong, sum)
		}
		return nil
	})
	require.NoError(t, err, "runs %d", runs)
}

// TestTxRangeGivesCopies: what a loop does with its pairs changes nothing.
func TestTxRangeGivesCopies(t *testing.T) {
	s, _ := edgeStore(t, BoltConfig{})
	require.NoError(t, s.Update(t.Context(), func(tx *Tx) error {
		for i := range 300 {
			if err := tx.Bucket("b").Put(fmt.Appendf(nil, "%04d", i), []byte{1}); err != nil {
				return err
			}
		}
		return nil
	}))
	n := 0
	require.NoError(t, s.View(t.Context(), func(tx *Tx) error {
		for p, err := range tx.Bucket("b").Range(nil, nil) {
			require.NoError(t, err)
			clear(p.Key) // it is a copy
			if n++; n > 1000 {
				break
			}
		}
		return nil
	}))
	require.Equal(t, 300, n)
}

// TestTxRangeGivesCopiesBeforeBreak: nor what counts as read.
func TestTxRangeGivesCopiesBeforeBreak(t *testing.T) {
	s, _ := edgeStore(t, BoltConfig{})
	put := func(k, v string) {
		require.NoError(t, s.Update(t.Context(), func(tx *Tx) error { return tx.Bucket("b").Put([]byte(k), []byte(v)) }))
	}
	put("m", "1")
	runs := 0
	require.NoError(t, s.Update(t.Context(), func(tx *Tx) error {
		runs++
		var seen string
		for p, err := range tx.Bucket("b").Range(nil, nil) {
			require.NoError(t, err)
			seen = string(p.Value)
			p.Key[0] = 'z'
			break
		}
		if runs == 1 {
			put("n", "x") // beyond what was seen: no reason to run again
		}
		return tx.Bucket("c").Put([]byte("seen"), []byte(seen))
	}))
	require.Equal(t, 1, runs)
}

// TestTxWriteToNestedBucket: what bbolt refuses is the caller's error, not an
// outcome that nobody knows.
func TestTxWriteToNestedBucket(t *testing.T) {
	s, path := edgeStore(t, BoltConfig{})
	require.NoError(t, s.Close())
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("mine"))
		if err != nil {
			return err
		}
		_, err = b.CreateBucket([]byte("inner"))
		return err
	}))
	require.NoError(t, db.Close())
	s, err = OpenBoltStore(t.Context(), path, BoltConfig{})
	require.NoError(t, err)
	err = s.Update(t.Context(), func(tx *Tx) error { return tx.Bucket("mine").Put([]byte("inner"), nil) })
	t.Log(err)
	_, err = s.Create(t.Context(), testRecord("k", "v"))
	require.NoError(t, err, "the store is poisoned")
}

// TestTxMaxRecords: the limit is for all that one transaction adds.
func TestTxMaxRecords(t *testing.T) {
	s, _ := edgeStore(t, BoltConfig{MaxRecords: 2})
	err := s.Update(t.Context(), func(tx *Tx) error {
		for i := range 10 {
			if _, err := tx.Records().Create(t.Context(), testRecord(fmt.Sprint(i), "")); err != nil {
				return err
			}
		}
		return nil
	})
	require.ErrorIs(t, err, ErrFull)
}

// TestTxRangeInGoroutine: a loop that outlasts its function keeps it from committing.
func TestTxRangeInGoroutine(t *testing.T) {
	t.Parallel()
	s, _ := edgeStore(t, BoltConfig{})
	require.NoError(t, s.Update(t.Context(), func(tx *Tx) error { return tx.Bucket("b").Put([]byte("n"), nil) }))
	reading, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	err := s.Update(t.Context(), func(tx *Tx) error {
		go func() {
			defer close(ended)
			for range tx.Bucket("b").Range(nil, nil) {
				close(reading)
				<-release
			}
		}()
		<-reading
		return tx.Bucket("c").Put([]byte("x"), nil)
	})
	close(release)
	<-ended
	require.ErrorIs(t, err, ErrInvalidInput)
}

// TestTxErrorOfAnImpossiblePicture: an error on account of a record and a bucket of
// different moments is not passed on.
func TestTxErrorOfAnImpossiblePicture(t *testing.T) {
	s, _ := edgeStore(t, BoltConfig{})
	k := Key{"test", "r"}
	state := func(b string, present bool) {
		require.NoError(t, s.Update(context.Background(), func(tx *Tx) error {
			rec, err := tx.Records().Get(context.Background(), k)
			switch {
			case present && errors.Is(err, ErrNotFound):
				_, err = tx.Records().Create(context.Background(), testRecord("r", ""))
			case !present && err == nil:
				err = tx.Records().Delete(context.Background(), k, rec.Version)
			case errors.Is(err, ErrNotFound):
				err = nil
			}
			return errors.Join(err, tx.Bucket("b").Put([]byte("n"), []byte(b)))
		}))
	}
	state("0", false)
	impossible := errors.New("n is 1 and the record is absent")
	ctx := &ctxProbe{Context: context.Background()}
	runs := 0
	err := s.Update(ctx, func(tx *Tx) error {
		runs++
		_, recErr := tx.Records().Get(context.Background(), k)
		if runs == 1 {
			state("1", true)
		}
		n, err := tx.Bucket("b").Get([]byte("n"))
		require.NoError(t, err)
		ctx.at, ctx.do = ctx.calls+2, func() { state("2", false) }
		if runs > 1 {
			ctx.at = 0
		}
		if errors.Is(recErr, ErrNotFound) && string(n) == "1" {
			return impossible
		}
		return nil
	})
	require.NoError(t, err)
}

// TestViewFault: a file that is cut short under a View is no panic.
func TestViewFault(t *testing.T) {
	s, path := edgeStore(t, BoltConfig{})
	require.NoError(t, s.Update(t.Context(), func(tx *Tx) error {
		for i := range 2000 {
			if err := tx.Bucket("b").Put(fmt.Appendf(nil, "%05d", i), make([]byte, 500)); err != nil {
				return err
			}
		}
		return nil
	}))
	defer func() {
		v := recover()
		require.Nil(t, v, "a fault of the file is a panic")
	}()
	err := s.View(t.Context(), func(tx *Tx) error {
		require.NoError(t, os.Truncate(path, 8192))
		for _, err := range tx.Bucket("b").Range(nil, nil) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	t.Log(err)
	require.ErrorIs(t, err, ErrPoisoned)
}

// TestTxAndClose: a transaction that checks what it has read when Close has come in
// between ends, and so does Close.
func TestTxAndClose(t *testing.T) {
	t.Parallel()
	for calls := 1; calls <= 4; calls++ { // before which of the looks at the context
		s, _ := edgeStore(t, BoltConfig{})
		closed := make(chan error, 1)
		ctx := &ctxProbe{Context: context.Background()}
		oops := errors.New("oops")
		err := s.Update(ctx, func(tx *Tx) error {
			_, err := tx.Bucket("b").Get([]byte("a"))
			require.NoError(t, err)
			_, err = tx.Records().Get(context.Background(), Key{"a", "b"})
			require.ErrorIs(t, err, ErrNotFound)
			ctx.at, ctx.do = ctx.calls+calls, func() {
				go func() { closed <- s.Close() }()
				for s.mu.TryRLock() { // until Close waits, or has ended
					over := s.closed
					s.mu.RUnlock()
					if over {
						return
					}
					runtime.Gosched()
				}
			}
			return oops
		})
		if !errors.Is(err, ErrClosed) {
			require.ErrorIs(t, err, oops)
		}
		if ctx.calls >= ctx.at {
			require.NoError(t, <-closed)
		}
	}
}
