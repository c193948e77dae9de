package idem

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func deleteInTx(t testing.TB, s *BoltStore, rec Record) {
	require.NoError(t, s.Update(t.Context(), func(tx *Tx) error {
		now, err := tx.Records().Get(t.Context(), rec.Key)
		if err != nil {
			return err
		}
		if err := tx.Bucket("b").Put([]byte("deleted"), []byte("yes")); err != nil {
			return err
		}
		return tx.Records().Delete(t.Context(), rec.Key, now.Version)
	}))
}

// TestTxDeleteAndCrash: what a transaction removed does not come back from the
// journal, where the record still is.
func TestTxDeleteAndCrash(t *testing.T) {
	s, path := edgeStore(t, BoltConfig{journalAfter: -1, SegmentBytes: minSegmentBytes})
	rec, err := s.Create(t.Context(), testRecord("k", "v"))
	require.NoError(t, err)
	deleteInTx(t, s, rec)
	_, err = s.Get(t.Context(), rec.Key)
	require.ErrorIs(t, err, ErrNotFound)
	crashed := filepath.Join(t.TempDir(), "x.db")
	copyFile(t, path, crashed)
	copyFile(t, path+"-wal", crashed+"-wal")
	again, err := OpenBoltStore(t.Context(), crashed, BoltConfig{})
	require.NoError(t, err)
	defer again.Close()
	require.NoError(t, again.View(t.Context(), func(tx *Tx) error {
		v, err := tx.Bucket("b").Get([]byte("deleted"))
		require.Equal(t, "yes", string(v))
		return err
	}))
	_, err = again.Get(t.Context(), rec.Key)
	require.ErrorIs(t, err, ErrNotFound, "the record that the transaction removed is back after a crash")
}

// TestTxDeleteAndMerge: nor by the merge of a segment that was frozen before.
func TestTxDeleteAndMerge(t *testing.T) {
	s, _ := edgeStore(t, BoltConfig{journalAfter: -1, SegmentBytes: minSegmentBytes, CacheBytes: -1})
	back := 0
	for i := 0; i < 3000 && back == 0; i++ {
		rec, err := s.Create(t.Context(), testRecord(fmt.Sprintf("z%05d", i), "some value of a record"))
		require.NoError(t, err)
		e := s.engine.(*journalEngine)
		e.mu.RLock()
		frozen := e.frozen
		e.mu.RUnlock()
		if frozen == nil {
			continue
		}
		// the newest key of the frozen one: merged last
		e.mu.Lock()
		keys := frozen.sorted()
		last := keys[len(keys)-1]
		e.mu.Unlock()
		k, _ := ParseKey(last)
		_ = rec
		deleteInTx(t, s, Record{Key: k})
		require.NoError(t, WaitForMerge(s))
		if _, err := s.Get(t.Context(), k); err == nil {
			back++
		}
	}
	require.Zero(t, back, "a record deleted by a transaction came back with a merge")
}
