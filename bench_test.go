package idem_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/idembolt/idem"
)

// The benchmarks compare ways of doing the same work, so read them as ratios
// within one run. One operation on a new key is two durable writes: the claim
// and the result (400 bytes), under a random-looking key of 36 bytes.

var (
	benchResult  = make([]byte, 400)
	benchClaim   = make([]byte, 120)
	benchCallers = []int{1, 16, 128}
)

func benchGuard(b *testing.B, c idem.BoltConfig) *idem.Guard {
	b.Helper()
	g, err := idem.Open(filepath.Join(b.TempDir(), "idem.db"), idem.WithBolt(c))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, g.Close()) })
	return g
}

func benchKey(n int64) idem.Key {
	// A multiplicative hash spreads the keys over the file as random ones would.
	return idem.Key{Scope: "bench", ID: fmt.Sprintf("%016x-%013d", uint64(n)*0x9E3779B97F4A7C15, n)}
}

func benchWork(context.Context, *idem.Attempt) ([]byte, error) { return benchResult, nil }

// shared runs op b.N times, spread over a fixed number of callers.
func shared(b *testing.B, callers int, op func(n int64) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := op(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func BenchmarkNewKey(b *testing.B) {
	for _, callers := range benchCallers {
		b.Run(fmt.Sprintf("store=idem/callers=%d", callers), func(b *testing.B) {
			g := benchGuard(b, idem.BoltConfig{})
			shared(b, callers, func(n int64) error {
				_, err := idem.Do(context.Background(), g, benchKey(n), nil, benchWork)
				return err
			})
		})
		b.Run(fmt.Sprintf("store=bbolt-update/callers=%d", callers), func(b *testing.B) {
			db := benchBolt(b)
			shared(b, callers, func(n int64) error { return twoPuts(db.Update, n) })
		})
		b.Run(fmt.Sprintf("store=bbolt-batch/callers=%d", callers), func(b *testing.B) {
			db := benchBolt(b)
			shared(b, callers, func(n int64) error { return twoPuts(db.Batch, n) })
		})
	}
}

func benchBolt(b *testing.B) *bolt.DB {
	b.Helper()
	db, err := bolt.Open(filepath.Join(b.TempDir(), "plain.db"), 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	require.NoError(b, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("records"))
		return err
	}))
	return db
}

// twoPuts is what a program without idem would do around its work.
func twoPuts(write func(func(*bolt.Tx) error) error, n int64) error {
	key := []byte(benchKey(n).String())
	for _, value := range [][]byte{benchClaim, benchResult} {
		err := write(func(tx *bolt.Tx) error { return tx.Bucket([]byte("records")).Put(key, value) })
		if err != nil {
			return err
		}
	}
	return nil
}

func BenchmarkRepeat(b *testing.B) {
	type order struct {
		ID     string `json:"id"`
		Amount int    `json:"amount"`
	}
	inputs := []struct {
		name  string
		value any
	}{{"none", nil}, {"bytes", []byte("amount=120")}, {"json", order{"order-1042", 120}}}
	stores := []struct {
		name   string
		config idem.BoltConfig
	}{{"cache", idem.BoltConfig{}}, {"bbolt", idem.BoltConfig{CacheBytes: -1}}}
	for _, store := range stores {
		for _, input := range inputs {
			b.Run(fmt.Sprintf("from=%s/input=%s", store.name, input.name), func(b *testing.B) {
				g := benchGuard(b, store.config)
				ctx, key := b.Context(), benchKey(1)
				repeat := func() (idem.Result[[]byte], error) { return idem.Do(ctx, g, key, input.value, benchWork) }
				_, err := repeat()
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					if res, err := repeat(); err != nil || !res.Replayed {
						b.Fatal(res.Replayed, err)
					}
				}
			})
		}
	}
}

// TestRepeatFromCacheAllocates guards the cheapest and most frequent answer.
func TestRepeatFromCacheAllocates(t *testing.T) {
	g, err := idem.Open(filepath.Join(t.TempDir(), "idem.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	ctx, key := t.Context(), benchKey(1)
	var failed error
	repeat := func() {
		if _, err := idem.Do(ctx, g, key, nil, benchWork); err != nil {
			failed = err
		}
	}
	repeat()
	require.LessOrEqual(t, testing.AllocsPerRun(100, repeat), 1.0)
	require.NoError(t, failed)
}
