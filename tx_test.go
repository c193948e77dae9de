package idem_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

func openTxStore(t testing.TB) *idem.BoltStore {
	t.Helper()
	s, err := idem.OpenBoltStore(t.Context(), filepath.Join(t.TempDir(), "tx.db"), idem.BoltConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func put(t testing.TB, s *idem.BoltStore, bucket, key, value string) {
	t.Helper()
	require.NoError(t, s.Update(t.Context(), func(tx *idem.Tx) error {
		return tx.Bucket(bucket).Put([]byte(key), []byte(value))
	}))
}

func get(t testing.TB, s *idem.BoltStore, bucket, key string) []byte {
	t.Helper()
	var value []byte
	require.NoError(t, s.View(t.Context(), func(tx *idem.Tx) (err error) {
		value, err = tx.Bucket(bucket).Get([]byte(key))
		return err
	}))
	return value
}

func pairs(b *idem.Bucket, from, to []byte) (list []string, err error) {
	for p, err := range b.Range(from, to) {
		if err != nil {
			return list, err
		}
		list = append(list, string(p.Key)+"="+string(p.Value))
	}
	return list, nil
}

func TestTxReadsItsWrites(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	put(t, s, "b", "1", "one")
	put(t, s, "b", "3", "three")
	put(t, s, "b", "5", "five")
	require.NoError(t, s.Update(t.Context(), func(tx *idem.Tx) error {
		b := tx.Bucket("b")
		require.NoError(t, b.Put([]byte("2"), []byte("two")))
		require.NoError(t, b.Put([]byte("3"), nil)) // empty is not absent
		require.NoError(t, b.Delete([]byte("1")))
		require.NoError(t, b.Delete([]byte("never there")))
		require.NoError(t, b.Put([]byte("6"), []byte("six")))
		list, err := pairs(b, nil, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"2=two", "3=", "5=five", "6=six"}, list)
		list, err = pairs(b, []byte("3"), []byte("5"))
		require.NoError(t, err)
		require.Equal(t, []string{"3=", "5=five"}, list)
		gone, err := b.Get([]byte("1"))
		require.NoError(t, err)
		require.Nil(t, gone)
		empty, err := b.Get([]byte("3"))
		require.NoError(t, err)
		require.NotNil(t, empty)
		require.Empty(t, empty)
		return nil
	}))
	require.Nil(t, get(t, s, "b", "1"))
	require.Equal(t, []byte("six"), get(t, s, "b", "6"))
	require.Nil(t, get(t, s, "no bucket", "1"))
}

func TestTxRangeOverPages(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	const n = 1000
	key := func(i int) []byte { return fmt.Appendf(nil, "%04d", i) }
	require.NoError(t, s.Update(t.Context(), func(tx *idem.Tx) error {
		for i := range n {
			if err := tx.Bucket("b").Put(key(i), key(i)); err != nil {
				return err
			}
		}
		return nil
	}))
	seen := 0
	require.NoError(t, s.Update(t.Context(), func(tx *idem.Tx) error {
		for p, err := range tx.Bucket("b").Range(nil, nil) {
			require.NoError(t, err)
			require.Equal(t, key(seen), p.Key)
			p.Value[0] = 'x' // a copy
			seen++
		}
		return nil
	}))
	require.Equal(t, n, seen)
	require.Equal(t, key(7), get(t, s, "b", "0007"))
}

func TestTxAppend(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 20 {
				err := s.Update(context.Background(), func(tx *idem.Tx) error {
					return errors.Join(tx.Bucket("log").Append([]byte{byte(i), 0}), tx.Bucket("log").Append([]byte{byte(i), 1}))
				})
				if err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, s.View(t.Context(), func(tx *idem.Tx) error {
		n, last := uint64(0), []byte(nil)
		for p, err := range tx.Bucket("log").Range(nil, nil) {
			require.NoError(t, err)
			n++
			require.Equal(t, n, binary.BigEndian.Uint64(p.Key))
			if n%2 == 0 {
				require.Equal(t, []byte{last[0], 1}, p.Value, "the appends of one transaction are apart")
			}
			last = p.Value
		}
		require.EqualValues(t, 320, n)
		return nil
	}))
}

func TestTxRefuses(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	long := bytes.Repeat([]byte("k"), 1<<15+1)
	tests := []struct {
		name string
		do   func(*idem.Tx) error
	}{
		{"reserved bucket", func(tx *idem.Tx) error { return tx.Bucket("idem.records").Put([]byte("a"), nil) }},
		{"reserved bucket read", func(tx *idem.Tx) error { _, err := tx.Bucket("idem.meta").Get([]byte("secret")); return err }},
		{"reserved bucket ranged", func(tx *idem.Tx) error { _, err := pairs(tx.Bucket("idem.x"), nil, nil); return err }},
		{"reserved bucket appended", func(tx *idem.Tx) error { return tx.Bucket("idem.").Append(nil) }},
		{"no name", func(tx *idem.Tx) error { return tx.Bucket("").Put([]byte("a"), nil) }},
		{"no key", func(tx *idem.Tx) error { return tx.Bucket("b").Put(nil, nil) }},
		{"long key", func(tx *idem.Tx) error { return tx.Bucket("b").Put(long, nil) }},
		{"too much", func(tx *idem.Tx) error {
			for i := range 5 {
				if err := tx.Bucket("b").Put([]byte{1, byte(i)}, make([]byte, idem.MaxTxBytes/4)); err != nil {
					return err
				}
			}
			return nil
		}},
		{"bad record", func(tx *idem.Tx) error {
			_, err := tx.Records().Create(context.Background(), idem.Record{})
			if !errors.Is(err, idem.ErrInvalidKey) {
				return err
			}
			return fmt.Errorf("%w: as expected", idem.ErrInvalidInput)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := s.Update(t.Context(), func(tx *idem.Tx) error {
				require.NoError(t, tx.Bucket("b").Put([]byte(tt.name), []byte("x")))
				return tt.do(tx)
			})
			require.ErrorIs(t, err, idem.ErrInvalidInput)
			err = s.Update(t.Context(), func(tx *idem.Tx) error {
				require.NoError(t, tx.Bucket("b").Put([]byte(tt.name), []byte("x")))
				_ = tt.do(tx) // an error that is not looked at does not commit half
				return nil
			})
			if tt.name != "bad record" {
				require.ErrorIs(t, err, idem.ErrInvalidInput)
				require.Nil(t, get(t, s, "b", tt.name))
			}
		})
	}
}

func TestTxEnded(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	put(t, s, "b", "k", "v")
	for name, run := range map[string]func(context.Context, func(*idem.Tx) error) error{"update": s.Update, "view": s.View} {
		var kept *idem.Tx
		require.NoError(t, run(t.Context(), func(tx *idem.Tx) error {
			kept = tx
			if name == "view" {
				require.ErrorIs(t, tx.Bucket("b").Put([]byte("k"), nil), idem.ErrReadOnly)
				_, err := tx.Records().Get(t.Context(), idem.Key{Scope: "a", ID: "b"})
				require.Error(t, err)
			}
			return nil
		}))
		b := kept.Bucket("b")
		_, err := b.Get([]byte("k"))
		require.ErrorIs(t, err, idem.ErrTxEnded)
		require.ErrorIs(t, b.Put([]byte("k"), nil), idem.ErrTxEnded)
		require.ErrorIs(t, b.Delete([]byte("k")), idem.ErrTxEnded)
		require.ErrorIs(t, b.Append(nil), idem.ErrTxEnded)
		_, err = pairs(b, nil, nil)
		require.ErrorIs(t, err, idem.ErrTxEnded)
		_, err = kept.Records().Get(t.Context(), idem.Key{Scope: "a", ID: "b"})
		require.ErrorIs(t, err, idem.ErrTxEnded)
	}
}

func TestTxErrorAndPanicWriteNothing(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	oops := errors.New("oops")
	require.Equal(t, oops, s.Update(t.Context(), func(tx *idem.Tx) error {
		require.NoError(t, tx.Bucket("b").Put([]byte("k"), nil))
		return oops
	}))
	require.PanicsWithValue(t, "boom", func() {
		_ = s.Update(t.Context(), func(tx *idem.Tx) error {
			require.NoError(t, tx.Bucket("b").Put([]byte("k"), nil))
			panic("boom")
		})
	})
	require.PanicsWithValue(t, "boom", func() { _ = s.View(t.Context(), func(*idem.Tx) error { panic("boom") }) })
	require.Nil(t, get(t, s, "b", "k"))
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, s.Update(ctx, func(tx *idem.Tx) error {
		cancel()
		return tx.Bucket("b").Put([]byte("k"), nil)
	}), context.Canceled)
	require.Nil(t, get(t, s, "b", "k"))
}

func TestTxRecords(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	ctx := t.Context()
	rec := func(id, value string) idem.Record {
		now := s.Now()
		return idem.Record{
			Key: idem.Key{Scope: "tx", ID: id}, State: idem.Completed, Kind: "test", Attempt: 1, Value: []byte(value),
			CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.AddDate(0, 0, 1),
		}
	}
	old, err := s.Create(ctx, rec("old", "1"))
	require.NoError(t, err)
	gone, err := s.Create(ctx, rec("gone", "1"))
	require.NoError(t, err)
	runs := 0
	require.NoError(t, s.Update(ctx, func(tx *idem.Tx) error {
		records := tx.Records()
		_, err := records.Get(ctx, rec("new", "").Key)
		require.ErrorIs(t, err, idem.ErrNotFound)
		fresh, err := records.Create(ctx, rec("new", "1"))
		require.NoError(t, err)
		_, err = records.Create(ctx, rec("new", "2"))
		require.ErrorIs(t, err, idem.ErrConflict)
		swapped, err := records.Swap(ctx, fresh.Version, rec("new", "2"))
		require.NoError(t, err)
		require.NotEqual(t, fresh.Version, swapped.Version)
		_, err = records.Swap(ctx, fresh.Version, rec("new", "3"))
		require.ErrorIs(t, err, idem.ErrConflict)
		current, err := records.Swap(ctx, old.Version+100, rec("old", "x"))
		require.ErrorIs(t, err, idem.ErrConflict)
		require.Equal(t, fmt.Sprint(runs+1), string(current.Value))
		require.NoError(t, records.Delete(ctx, gone.Key, gone.Version))
		require.ErrorIs(t, records.Delete(ctx, gone.Key, gone.Version), idem.ErrNotFound)
		_, err = s.Get(ctx, rec("new", "").Key)
		require.ErrorIs(t, err, idem.ErrNotFound, "not before the commit")
		if runs++; runs == 1 { // somebody else changes what was read
			_, err = s.Swap(ctx, old.Version, rec("old", "2"))
			require.NoError(t, err)
			return nil
		}
		_, err = records.Swap(ctx, current.Version, rec("old", "3"))
		return err
	}))
	require.Equal(t, 2, runs)
	for id, want := range map[string]string{"new": "2", "old": "3"} {
		got, err := s.Get(ctx, rec(id, "").Key)
		require.NoError(t, err)
		require.Equal(t, want, string(got.Value))
		require.Greater(t, got.Version, gone.Version)
	}
	_, err = s.Get(ctx, gone.Key)
	require.ErrorIs(t, err, idem.ErrNotFound)
	report, err := s.Check(ctx)
	require.NoError(t, err)
	require.Zero(t, report.Problems, "%+v", report.Findings)
}

func TestWatchBucket(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	changed, stop := s.WatchBucket("b")
	defer stop()
	put(t, s, "other", "k", "v")
	select {
	case <-changed:
		require.Fail(t, "it is another bucket")
	default:
	}
	put(t, s, "b", "k", "v")
	<-changed
}

// TestTxRangeOfLargeValues: a page of them does not hold them all.
func TestTxRangeOfLargeValues(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	const n = 20
	for i := range n {
		put(t, s, "b", fmt.Sprintf("%02d", i), string(bytes.Repeat([]byte{byte(i)}, 300<<10)))
	}
	seen := 0
	require.NoError(t, s.View(t.Context(), func(tx *idem.Tx) error {
		for p, err := range tx.Bucket("b").Range(nil, nil) {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%02d", seen), string(p.Key))
			require.Len(t, p.Value, 300<<10)
			seen++
		}
		return nil
	}))
	require.Equal(t, n, seen)
}
