package idem

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// noSpaceOnce is an engine whose first commit finds no space.
type noSpaceOnce struct {
	engine
	failed chan struct{} // closed by it
}

func (e *noSpaceOnce) commit(b *batch) error {
	select {
	case <-e.failed:
		return e.engine.commit(b)
	default:
		close(e.failed)
		return fmt.Errorf("%w: injected", errNoSpace)
	}
}

// TestRelaxedVersionIsNotGivenAgain: who was told a version of a write that then
// found no space must not be able to change another record by it.
func TestLoneRelaxedVersionIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	s, _ := edgeStore(t, BoltConfig{})
	rec, err := s.Create(t.Context(), testRecord("k", "v"))
	require.NoError(t, err)
	full := &noSpaceOnce{s.engine, make(chan struct{})}
	s.engine = full
	lost, err := s.SwapRelaxed(t.Context(), rec.Version, testRecord("k", "lost"))
	require.NoError(t, err)
	<-full.failed
	other, err := s.Swap(t.Context(), rec.Version, testRecord("k", "other"))
	require.NoError(t, err)
	require.Greater(t, other.Version, lost.Version)
}

// TestTxDeletesNeedNoRoom: a transaction that only deletes must be possible on a
// disk that has no room for new keys.
func TestTxDeletesNeedNoRoom(t *testing.T) {
	t.Parallel()
	deletes := &batch{user: []userWrite{{bucket: "b", key: []byte("k")}}}
	require.False(t, deletes.hasNewKeys())
	puts := &batch{user: []userWrite{{bucket: "b", key: []byte("k"), value: []byte{}}}}
	require.True(t, puts.hasNewKeys())
}
