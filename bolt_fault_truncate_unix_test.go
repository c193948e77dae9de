//go:build unix

package idem

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/stretchr/testify/require"
)

const truncateRecords = 15

// TestTruncated cuts the file at every page and 100 bytes to either side, before
// it is opened and while it is open and mapped. Every call must end, with the
// right record or a typed error; the process must live; Close must return. The
// work is done in a child, because a fault that gets through ends the process.
func TestTruncated(t *testing.T) {
	if !isFaultChild(t) {
		t.Parallel()
		runFaultChild(t)
		return
	}
	path := faultFile(t, truncateRecords, 1500)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	page := os.Getpagesize()
	outcomes := make(map[string]int)
	for cut := 0; cut <= highWater(t, path); cut += page {
		for _, end := range []int{cut - 100, cut, cut + 100} {
			if end < 0 || end >= len(whole) {
				continue
			}
			truncatedBefore(t, whole, end, outcomes)
			for _, c := range []BoltConfig{{CacheBytes: -1}, {ReadOnly: true, CacheBytes: -1}} {
				truncatedWhileOpen(t, whole, end, c, outcomes)
			}
		}
	}
	fmt.Println(outcomes)
	require.Greater(t, outcomes["refused"], 5)
	require.Greater(t, outcomes["poisoned"], 5)
	require.Greater(t, outcomes["served"], 5)
	fmt.Println(faultInjected)
}

// highWater is the end of the last page that was ever used.
func highWater(t *testing.T, path string) (end int) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bolt.Tx) error { end = int(tx.Size()); return nil }))
	require.NoError(t, db.Close())
	return end
}

func truncatedBefore(t *testing.T, whole []byte, end int, outcomes map[string]int) {
	path := faultPath(t)
	require.NoError(t, os.WriteFile(path, whole[:end], 0o600))
	s, err := OpenBoltStore(t.Context(), path, BoltConfig{LockTimeout: -1, CacheBytes: -1})
	if err != nil {
		require.Truef(t, isAny(err, ErrCorrupt, ErrNotIdem), "%d bytes: %v", end, err)
		outcomes["refused"]++
		return
	}
	useTruncated(t, s, end, outcomes)
}

func truncatedWhileOpen(t *testing.T, whole []byte, end int, c BoltConfig, outcomes map[string]int) {
	path := faultPath(t)
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	s, err := OpenBoltStore(t.Context(), path, c)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(end)))
	useTruncated(t, s, end, outcomes)
}

// useTruncated makes every kind of call and closes the store, under a deadline.
func useTruncated(t *testing.T, s *BoltStore, end int, outcomes map[string]int) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		typed := func(err error) bool {
			return err == nil || isAny(err, ErrCorrupt, ErrPoisoned, ErrReadOnly, ErrFull)
		}
		for i := range truncateRecords {
			rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("k%d", i)))
			if !typed(err) || err == nil && string(rec.Value) != faultValue(i, 1500) {
				t.Errorf("cut to %d bytes: record %d: %v", end, i, err)
			}
		}
		for _, err := range s.Scan(t.Context(), Query{}) {
			if !typed(err) {
				t.Errorf("cut to %d bytes: scan: %v", end, err)
			}
		}
		for i := range 3 {
			if _, err := s.Create(t.Context(), completed(fmt.Sprintf("new%d", i), "v")); !typed(err) {
				t.Errorf("cut to %d bytes: create: %v", end, err)
			}
		}
		if _, err := s.Expire(t.Context(), 10); !typed(err) {
			t.Errorf("cut to %d bytes: expire: %v", end, err)
		}
		_, err := s.Info(t.Context())
		if !typed(err) {
			t.Errorf("cut to %d bytes: info: %v", end, err)
		}
		if errors.Is(err, ErrPoisoned) {
			outcomes["poisoned"]++
		} else {
			outcomes["served"]++
		}
		if err := s.Close(); err != nil && !typed(err) {
			t.Errorf("cut to %d bytes: close: %v", end, err)
		}
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		panic(fmt.Sprintf("cut to %d bytes: a call hangs", end)) // with every goroutine's stack
	}
}
