package idem_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemtest"
)

// patientBolt waits long enough for a file that many callers open in turn, and
// keeps nothing beyond its expiry.
var patientBolt = idem.BoltConfig{LockTimeout: time.Minute, Grace: -1}

func TestMemoryStoreConforms(t *testing.T) {
	t.Parallel()
	idemtest.Exercise(t, newConformingMemory)
}

func TestMemoryStoreConformsInBubble(t *testing.T) {
	t.Parallel()
	idemtest.Exercise(t, newConformingMemory, idemtest.InBubble())
}

func TestBoltStoreConforms(t *testing.T) {
	t.Parallel()
	idemtest.Exercise(t, func(t *testing.T) idem.Store { return openConforming(t, patientBolt) })
}

func TestBoltStoreConformsInBubble(t *testing.T) {
	t.Parallel()
	idemtest.Exercise(t, func(t *testing.T) idem.Store { return openConforming(t, patientBolt) }, idemtest.InBubble())
}

func TestBoltStoreConformsReopened(t *testing.T) {
	t.Parallel()
	idemtest.ExerciseReopen(t, reopening(patientBolt))
}

func TestJournalConforms(t *testing.T) {
	t.Parallel()
	idemtest.Exercise(t, func(t *testing.T) idem.Store { return openConforming(t, idem.WithJournal(patientBolt)) })
}

func TestJournalConformsInBubble(t *testing.T) {
	t.Parallel()
	idemtest.Exercise(t, func(t *testing.T) idem.Store { return openConforming(t, idem.WithJournal(patientBolt)) }, idemtest.InBubble())
}

func TestJournalConformsReopened(t *testing.T) {
	t.Parallel()
	idemtest.ExerciseReopen(t, reopening(idem.WithJournal(patientBolt)))
}

// reopening returns a factory of stores that can be closed and opened again.
func reopening(c idem.BoltConfig) func(t *testing.T) (idem.Store, func() idem.Store) {
	return func(t *testing.T) (idem.Store, func() idem.Store) {
		path := filepath.Join(t.TempDir(), "reopened.db")
		open := func() *idem.BoltStore {
			s, err := idem.OpenBoltStore(t.Context(), path, c)
			require.NoError(t, err)
			return s
		}
		s := open()
		t.Cleanup(func() { checkAndClose(t, s) })
		return s, func() idem.Store {
			require.NoError(t, s.Close())
			s = open()
			return s
		}
	}
}

func TestTransientStoreConforms(t *testing.T) {
	t.Parallel()
	idemtest.Exercise(t, func(t *testing.T) idem.Store {
		path := filepath.Join(t.TempDir(), "transient.db")
		s, err := idem.OpenTransient(t.Context(), path, patientBolt)
		require.NoError(t, err)
		t.Cleanup(func() {
			file, err := idem.OpenBoltStore(context.WithoutCancel(t.Context()), path, patientBolt)
			require.NoError(t, err)
			checkAndClose(t, file)
		})
		return s
	})
}

func newConformingMemory(t *testing.T) idem.Store {
	s := idem.NewMemoryStore(idem.MemoryConfig{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openConforming(t *testing.T, c idem.BoltConfig) *idem.BoltStore {
	t.Helper()
	s, err := idem.OpenBoltStore(t.Context(), filepath.Join(t.TempDir(), "conforms.db"), c)
	require.NoError(t, err)
	t.Cleanup(func() { checkAndClose(t, s) })
	return s
}

// checkAndClose wants a file without a flaw, whatever the test did to it.
func checkAndClose(t *testing.T, s *idem.BoltStore) {
	t.Helper()
	report, err := s.Check(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	require.Empty(t, report.Findings)
	require.NoError(t, s.Close())
}
