package idem

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckWhileMerging checks a store that is written and merged meanwhile:
// nothing may seem wrong that is not.
func TestCheckWhileMerging(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	s := openFault(t, path, WithJournal(BoltConfig{}))
	var writing sync.WaitGroup
	for caller := range 4 {
		writing.Go(func() {
			for i := range 300 {
				if _, err := s.Create(t.Context(), completed(fmt.Sprintf("%d-%d", caller, i), faultValue(i, 1000))); err != nil {
					t.Errorf("Create: %v", err)
					return
				}
			}
		})
	}
	written := make(chan struct{})
	go func() {
		writing.Wait()
		close(written)
	}()
	checks := 0
	for done := false; !done; checks++ {
		select {
		case <-written:
			done = true
		default:
		}
		report, err := s.Check(t.Context())
		require.NoError(t, err)
		require.Zero(t, report.Problems, "%v", report.Findings)
		if done {
			require.Equal(t, 4*300, report.Records)
		}
	}
	require.Greater(t, checks, 2)
	require.Greater(t, s.engine.(*journalEngine).file.mergedGeneration(), uint64(3))
	require.NoError(t, s.Close())
	requireSound(t, path)
}
