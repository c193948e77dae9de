package idem

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stretchr/testify/require"

	bolt "go.etcd.io/bbolt"
)

// TestWhatReadersWaitFor looks at what readers may see at the moment when a
// transaction's header page is written and not yet synced. They may see a merge,
// all of which is durable in the journal, and must not see a direct commit.
func TestWhatReadersWaitFor(t *testing.T) {
	t.Parallel()
	s := openFault(t, faultFile(t, 1, 10), WithJournal(BoltConfig{}))
	e := s.engine.(*journalEngine).file
	var shown []bool
	full, before := false, e.durable.Load()
	hookWrites(t, e.db, func(next pwrite, b []byte, off int64) (int, error) {
		if full {
			return 0, unix.ENOSPC
		}
		n, err := next(b, off)
		if off < int64(2*os.Getpagesize()) {
			shown = append(shown, e.durable.Load() > before)
		}
		return n, err
	})
	put := func(i int) *batch {
		rec := completed(fmt.Sprint(i), "v")
		rec.Version = 100 + uint64(i)
		text := []byte(rec.Key.String())
		return &batch{changes: []change{{key: text, enc: encodeRecord(text, &rec), version: rec.Version}}, state: storeState{version: rec.Version}}
	}
	merge := func(b *batch) error {
		return e.mergeStep(func(tx *bolt.Tx, state *storeState) error { return b.apply(tx, state) }, b.state)
	}
	require.NoError(t, e.commit(put(1)))
	before = e.durable.Load()
	require.NoError(t, merge(put(2)))
	require.Equal(t, []bool{false, true}, shown)

	full = true
	before = e.durable.Load()
	require.ErrorIs(t, merge(put(3)), errNoSpace)
	require.Equal(t, before, e.durable.Load(), "the next transaction has the same id and may be a direct one")
	full, shown = false, nil
	require.NoError(t, e.commit(put(4)))
	require.Equal(t, []bool{false}, shown)
}
