package idem

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzJournalState decodes what a batch of the journal says beside its records.
func FuzzJournalState(f *testing.F) {
	now := time.Unix(1_700_000_000, 0).UTC()
	state := storeState{version: 9, clock: now, servedUntil: now, records: 2, bytes: 300, downtimes: []span{{now, now.Add(time.Hour)}}}
	counts := ledgerBatch{
		notes: map[Key]note{{Scope: "s", ID: "k"}: {replays: 2, lastReplay: 7}},
		hours: map[int64]hourCounts{472222: {"replayed": 2}},
	}
	f.Add(encodeJournalState(3, state, counts))
	f.Add(encodeJournalState(0, storeState{}, ledgerBatch{}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		file, s, l, err := decodeJournalState(data)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		fileAgain, sAgain, lAgain, err := decodeJournalState(encodeJournalState(file, s, l))
		require.NoError(t, err)
		require.Equal(t, file, fileAgain)
		require.Equal(t, s, sAgain)
		require.Equal(t, len(l.notes), len(lAgain.notes))
		require.Equal(t, len(l.hours), len(lAgain.hours))
		for key, n := range l.notes {
			require.Equal(t, n, lAgain.notes[key])
		}
		lAgain.add(l) // whatever it is, it can be summed up
	})
}
