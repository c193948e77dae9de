package idem

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// TestOldBackup puts an old copy of the file under a journal that has gone on. It
// is refused: what was merged or committed in between is nowhere.
func TestOldBackup(t *testing.T) {
	t.Parallel()
	small := func(t *testing.T, s *BoltStore, from, to int) {
		for i := from; i < to; i++ {
			_, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", i), faultValue(i, 600)))
			require.NoError(t, err)
		}
	}
	large := func(t *testing.T, s *BoltStore) {
		_, err := s.Create(t.Context(), completed("large", faultValue(1, directBytes)))
		require.NoError(t, err)
	}
	tests := map[string]struct {
		before, after func(t *testing.T, s *BoltStore)
		refused       bool
	}{
		"from before the journal, merged since": {func(*testing.T, *BoltStore) {}, func(t *testing.T, s *BoltStore) { small(t, s, 0, 400) }, true},
		"merged since": {
			func(t *testing.T, s *BoltStore) { small(t, s, 0, 200) },
			func(t *testing.T, s *BoltStore) { small(t, s, 200, 400) }, true},
		"committed to since": {
			func(t *testing.T, s *BoltStore) { small(t, s, 0, 10) },
			func(t *testing.T, s *BoltStore) { large(t, s); small(t, s, 10, 11) }, true},
		"nothing since": {
			func(t *testing.T, s *BoltStore) { small(t, s, 0, 10); large(t, s) },
			func(t *testing.T, s *BoltStore) { small(t, s, 10, 20) }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, restored := faultPath(t), faultPath(t)
			s := openFault(t, path, WithJournal(BoltConfig{}))
			tt.before(t, s)
			require.NoError(t, WaitForMerge(s))
			copyFile(t, path, restored)
			tt.after(t, s)
			require.NoError(t, WaitForMerge(s))
			copyFile(t, path+journal.Suffix, restored+journal.Suffix)
			want := contents(t, s)
			after, err := OpenBoltStore(t.Context(), restored, BoltConfig{})
			if tt.refused {
				require.ErrorIs(t, err, ErrJournal)
				require.ErrorContains(t, err, "move the journal away")
				require.ErrorContains(t, err, restored+journal.Suffix)
				require.NoError(t, os.Remove(restored+journal.Suffix))
				requireSound(t, restored)
				return
			}
			require.NoError(t, err)
			require.Equal(t, want, contents(t, after))
			require.NoError(t, after.Close())
		})
	}
}

// TestJournalTakenAway removes or replaces the journal under a store: the next
// write is refused, since it would be lost with the process, and poisons it.
func TestJournalTakenAway(t *testing.T) {
	t.Parallel()
	tests := map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+"-away"), os.WriteFile(path, nil, 0o600))
		},
	}
	for name, take := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			s := openFault(t, path, WithJournal(BoltConfig{}))
			_, err := s.Create(t.Context(), completed("k", "v"))
			require.NoError(t, err)
			require.NoError(t, take(path+journal.Suffix))
			_, err = s.Create(t.Context(), completed("next", "v"))
			require.ErrorIs(t, err, ErrPoisoned)
			require.ErrorContains(t, err, "the journal was "+name)
			requirePoisoned(t, s, faultKey("k"))
			require.NoError(t, s.Close())
		})
	}
}
