package idem

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCrashBetweenMergeSteps takes both files as they are after each step of a
// merge. Until the last one the bbolt file may have records that its index lacks:
// a reader must not take that for damage, and whoever writes must finish the merge.
func TestCrashBetweenMergeSteps(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	s := openFault(t, path, WithJournal(BoltConfig{}))
	const records = 20
	for i := range records {
		_, err := s.Create(t.Context(), completed(fmt.Sprint(i), faultValue(i, 500)))
		require.NoError(t, err)
	}
	want := contents(t, s)
	e := s.engine.(*journalEngine)
	e.active.sorted()
	steps := e.active.mergeSteps(e.file, e.log.Generation(), 7, false)
	require.Greater(t, len(steps), 4)
	lacking := 0
	for i, step := range steps {
		require.NoError(t, e.file.mergeStep(step, e.active.state))
		crashed := faultPath(t)
		readDisk(t, path).write(t, crashed)

		reader := openFault(t, crashed, BoltConfig{ReadOnly: true})
		report, err := reader.Check(t.Context())
		require.NoError(t, err)
		require.Zero(t, report.Problems, "after step %d: %v", i, report.Findings)
		if report.IndexEntries < min(7*(i+1), records) {
			lacking++
		}
		require.Equal(t, want, contents(t, reader))
		info, err := reader.Info(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, records, info.Records)
		require.NoError(t, reader.Close())

		writer := openFault(t, crashed, BoltConfig{})
		require.Equal(t, want, contents(t, writer))
		require.NoError(t, writer.Close())
		requireSound(t, crashed)
	}
	require.Positive(t, lacking, "no step left records without their entries")
}

// TestTotalsOfSplitBatch: a record is removed because it has expired while a
// batch is planned on it, and the batch is committed in two parts.
func TestTotalsOfSplitBatch(t *testing.T) {
	t.Parallel()
	s := openFault(t, faultPath(t), WithJournal(BoltConfig{}))
	_, err := s.Create(t.Context(), completed("k", "old"))
	require.NoError(t, err)
	e := s.engine.(*journalEngine)
	require.NoError(t, e.mergeAll(e.log.Generation()))
	records, bytes := e.totals()
	put := func(id string, size, oldSize int, version uint64) change {
		rec := completed(id, faultValue(1, size))
		rec.Version = version
		key := []byte(rec.Key.String())
		return change{key: key, enc: encodeRecord(key, &rec), version: version, oldSize: oldSize, fresh: oldSize == 0}
	}
	successor, large := put("k", 10, int(bytes), 10), put("large", directBytes, 0, 11)
	// What removeExpired has done meanwhile:
	e.expiring[string(successor.key)] = true
	e.records.Add(-1)
	e.bytes.Add(-bytes)
	require.NoError(t, e.commit(&batch{changes: []change{large, successor}, state: storeState{version: 11}}))
	now, nowBytes := e.totals()
	require.Equal(t, records+1, now)
	require.EqualValues(t, len(large.enc)+len(successor.enc), nowBytes)
	require.Empty(t, e.expiring)
}
