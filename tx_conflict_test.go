package idem_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// TestTxRunsAgain: a transaction that has read what another one changed does not
// commit on it.
func TestTxRunsAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		read   func(*idem.Bucket) error
		change func(*idem.Bucket) error
		again  bool
	}{
		{"same key", func(b *idem.Bucket) error { _, err := b.Get([]byte("2")); return err }, func(b *idem.Bucket) error { return b.Put([]byte("2"), []byte("x")) }, true},
		{"same value", func(b *idem.Bucket) error { _, err := b.Get([]byte("2")); return err }, func(b *idem.Bucket) error { return b.Put([]byte("2"), []byte("v")) }, false},
		{"other key", func(b *idem.Bucket) error { _, err := b.Get([]byte("2")); return err }, func(b *idem.Bucket) error { return b.Put([]byte("3"), []byte("x")) }, false},
		{"new key", func(b *idem.Bucket) error { _, err := b.Get([]byte("9")); return err }, func(b *idem.Bucket) error { return b.Put([]byte("9"), nil) }, true},
		{"deleted key", func(b *idem.Bucket) error { _, err := b.Get([]byte("2")); return err }, func(b *idem.Bucket) error { return b.Delete([]byte("2")) }, true},
		{"within the range", func(b *idem.Bucket) error { _, err := pairs(b, []byte("2"), []byte("4")); return err }, func(b *idem.Bucket) error { return b.Put([]byte("25"), nil) }, true},
		{"beside the range", func(b *idem.Bucket) error { _, err := pairs(b, []byte("2"), []byte("4")); return err }, func(b *idem.Bucket) error { return b.Put([]byte("5"), nil) }, false},
		{"not come to", func(b *idem.Bucket) error {
			for _, err := range b.Range(nil, nil) {
				return err
			}
			return nil
		}, func(b *idem.Bucket) error { return b.Put([]byte("2"), nil) }, false},
		{"behind the end", func(b *idem.Bucket) error { _, err := pairs(b, nil, nil); return err }, func(b *idem.Bucket) error { return b.Append(nil) }, true},
	}
	for _, tt := range tests {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, fails), func(t *testing.T) {
				t.Parallel()
				s := openTxStore(t)
				for _, key := range []string{"1", "2", "3"} {
					put(t, s, "b", key, "v")
				}
				oops, runs := errors.New("oops"), 0
				err := s.Update(t.Context(), func(tx *idem.Tx) error {
					runs++
					require.NoError(t, tt.read(tx.Bucket("b")))
					_, err := tx.Bucket("c").Get([]byte("second"))
					require.NoError(t, err)
					if runs == 1 {
						require.NoError(t, s.Update(t.Context(), func(other *idem.Tx) error { return tt.change(other.Bucket("b")) }))
					}
					if fails {
						return oops
					}
					return tx.Bucket("c").Put([]byte("k"), nil)
				})
				require.Equal(t, fails, errors.Is(err, oops))
				require.Equal(t, map[bool]int{true: 2, false: 1}[tt.again], runs)
			})
		}
	}
}

// TestTxCounter: lost updates would show in the sum.
func TestTxCounter(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	const workers, each = 16, 25
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				err := s.Update(context.Background(), func(tx *idem.Tx) error {
					b := tx.Bucket("counters")
					v, err := b.Get([]byte("n"))
					if err != nil {
						return err
					}
					n := uint64(0)
					if v != nil {
						n = binary.BigEndian.Uint64(v)
					}
					return b.Put([]byte("n"), binary.BigEndian.AppendUint64(nil, n+1))
				})
				if err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, workers*each, binary.BigEndian.Uint64(get(t, s, "counters", "n")))
}

// TestTxLargeRead: what is checked before the commit is not taken for true after
// it was changed in between.
func TestTxLargeRead(t *testing.T) {
	t.Parallel()
	s := openTxStore(t)
	const n = 300
	key := func(i int) []byte { return fmt.Appendf(nil, "%04d", i) }
	require.NoError(t, s.Update(t.Context(), func(tx *idem.Tx) error {
		for i := range n {
			require.NoError(t, tx.Bucket("b").Put(key(i), []byte{1}))
		}
		return nil
	}))
	var wg sync.WaitGroup
	const workers = 8
	for range workers {
		wg.Go(func() { // moves one from the first that has some to the sum
			for range n / workers {
				err := s.Update(context.Background(), func(tx *idem.Tx) error {
					b := tx.Bucket("b")
					for p, err := range b.Range(nil, nil) {
						if err != nil {
							return err
						}
						if p.Value[0] == 0 {
							continue
						}
						sum, err := tx.Bucket("sum").Get([]byte("n"))
						if err != nil {
							return err
						}
						total := uint64(1)
						if sum != nil {
							total += binary.BigEndian.Uint64(sum)
						}
						return errors.Join(b.Put(p.Key, []byte{0}), tx.Bucket("sum").Put([]byte("n"), binary.BigEndian.AppendUint64(nil, total)))
					}
					return errors.New("none is left")
				})
				if err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, n/workers*workers, binary.BigEndian.Uint64(get(t, s, "sum", "n")))
}
