package idem_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// expirer is a store for janitors only: it counts down what is left to remove.
type expirer struct {
	idem.Store
	left int
	took time.Duration // of one batch
	err  error

	mu    sync.Mutex
	began time.Time
	calls []time.Duration // since began
	sizes []int
}

func (e *expirer) Expire(_ context.Context, limit int) (int, error) {
	e.mu.Lock()
	e.calls, e.sizes = append(e.calls, time.Since(e.began)), append(e.sizes, limit)
	e.mu.Unlock()
	time.Sleep(e.took)
	n := min(limit, e.left)
	e.left -= n
	return n, e.err
}

type round struct {
	removed int
	err     error
}

func TestJanitorWorksInBatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		left   int
		took   time.Duration
		config idem.JanitorConfig
		calls  []time.Duration
		batch  int
	}{
		{"nothing to do", 0, 0, idem.JanitorConfig{}, []time.Duration{time.Minute}, 256},
		{"less than a batch", 255, 0, idem.JanitorConfig{}, []time.Duration{time.Minute}, 256},
		{"a full batch may not be all", 256, 0, idem.JanitorConfig{}, []time.Duration{time.Minute, time.Minute + 5*time.Millisecond}, 256},
		{"pauses", 25, 0, idem.JanitorConfig{Interval: time.Second, Batch: 10, Pause: 20 * time.Millisecond},
			[]time.Duration{1000e6, 1020e6, 1040e6}, 10},
		{"pauses as long as it worked", 25, 100 * time.Millisecond, idem.JanitorConfig{Interval: time.Second, Batch: 10, Pause: 20 * time.Millisecond},
			[]time.Duration{1000e6, 1200e6, 1400e6}, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &expirer{left: tt.left, took: tt.took, began: time.Now()}
				rounds := make(chan round, 1)
				tt.config.OnRound = func(removed int, err error) { rounds <- round{removed, err} }
				j, err := idem.StartJanitor(store, tt.config)
				require.NoError(t, err)
				require.Equal(t, round{tt.left, nil}, <-rounds)
				require.NoError(t, j.Close())
				require.Equal(t, tt.calls, store.calls)
				for _, size := range store.sizes {
					require.Equal(t, tt.batch, size)
				}
			})
		})
	}
}

func TestJanitorGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &expirer{err: errDisk, began: time.Now()}
		rounds := make(chan round)
		j, err := idem.StartJanitor(store, idem.JanitorConfig{OnRound: func(n int, err error) { rounds <- round{n, err} }})
		require.NoError(t, err)
		for range 3 {
			require.Equal(t, round{0, errDisk}, <-rounds)
		}
		require.NoError(t, j.Close())
		require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}, store.calls)
	})
}

func TestJanitorCloseWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &expirer{left: 1000, took: time.Second, began: time.Now()}
		j, err := idem.StartJanitor(store, idem.JanitorConfig{OnRound: func(int, error) { t.Error("a round was cut short, not ended") }})
		require.NoError(t, err)
		time.Sleep(time.Minute + time.Millisecond)
		require.NoError(t, j.Close())
		require.Equal(t, time.Minute+time.Second, time.Since(store.began), "the batch under way is finished, no other begun")
		require.Len(t, store.calls, 1)
		require.NoError(t, j.Close())
	})
}

func TestJanitorConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []idem.JanitorConfig{{Interval: -1}, {Batch: -1}, {Pause: -1}} {
		_, err := idem.StartJanitor(&expirer{}, c)
		require.ErrorContains(t, err, "must not be negative", "%+v", c)
	}
}

func TestJanitorLeavesRunningAttemptsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := idem.NewMemoryStore(idem.MemoryConfig{})
		seed(t, store, idem.Processing, 2*time.Hour, time.Hour)
		j, err := idem.StartJanitor(store, idem.JanitorConfig{})
		require.NoError(t, err)
		time.Sleep(2*time.Hour - time.Second)
		require.Equal(t, idem.Processing, stored(t, store).State)
		time.Sleep(2 * time.Minute)
		for _, err := range store.Scan(t.Context(), idem.Query{Expired: true}) {
			t.Fatalf("something is left, %v", err)
		}
		require.NoError(t, j.Close())
	})
}

func TestIdleJanitorWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "idem.db")
		rounds := 0
		g, err := idem.Open(path, idem.WithJanitor(idem.JanitorConfig{OnRound: func(removed int, err error) {
			rounds++
			if removed != 0 || err != nil {
				t.Errorf("a round removed %d, %v", removed, err)
			}
		}}))
		require.NoError(t, err)
		_, err = idem.Do(t.Context(), g, order, pay, returns(1, nil))
		require.NoError(t, err)
		before := fileSum(t, path)
		time.Sleep(100*time.Minute + time.Second)
		require.Equal(t, before, fileSum(t, path))
		require.NoError(t, g.Close())
		require.Equal(t, 100, rounds)
	})
}

func fileSum(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return fmt.Sprintf("%x", sha256.Sum256(data))
}
