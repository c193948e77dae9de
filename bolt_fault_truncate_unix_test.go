//go:build unix

package idem

import (
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
// right record or a typed error; an open store may miss a record that was cut
// off, but must not write any more; the process must live; Close must return. The
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
	used := highWater(t, path) // what is behind it was never written
	for cut := 0; cut <= used; cut += page {
		for _, end := range []int{cut - 100, cut, cut + 100} {
			if end < 0 || end >= used {
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
	if err == nil {
		require.NoError(t, s.Close())
		t.Fatalf("cut to %d bytes, and opened", end)
	}
	require.Truef(t, isAny(err, ErrCorrupt, ErrNotIdem), "%d bytes: %v", end, err)
	outcomes["refused"]++
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
		check := func(what string, err error, allowed ...error) {
			if !isAny(err, allowed...) {
				t.Errorf("cut to %d bytes: %s: %v", end, what, err)
			}
		}
		for i := range truncateRecords {
			rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("k%d", i)))
			if err != nil {
				check("get", err, ErrCorrupt, ErrFormat, ErrPoisoned, ErrNotFound)
			} else if string(rec.Value) != faultValue(i, 1500) {
				t.Errorf("cut to %d bytes: record %d is wrong", end, i)
			}
		}
		for _, err := range s.Scan(t.Context(), Query{}) {
			if err != nil {
				check("scan", err, ErrCorrupt, ErrFormat, ErrPoisoned)
			}
		}
		for range 3 {
			_, err := s.Create(t.Context(), completed("new", "v"))
			check("create", err, ErrPoisoned, ErrReadOnly)
		}
		_, err := s.Expire(t.Context(), 10)
		check("expire", err, ErrPoisoned)
		_, err = s.Info(t.Context())
		check("info", err, ErrPoisoned)
		outcomes["poisoned"]++
		if err := s.Close(); err != nil {
			t.Errorf("cut to %d bytes: close: %v", end, err)
		}
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		panic(fmt.Sprintf("cut to %d bytes: a call hangs", end)) // with every goroutine's stack
	}
}
