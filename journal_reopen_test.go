package idem

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/internal/journal"
)

// crashedStore is a store that was cut off while it had a journal with records in
// both segments' worth of overlay, and what it held.
func crashedStore(t *testing.T) (path string, want map[string]string) {
	t.Helper()
	working := faultPath(t)
	s := openFault(t, working, BoltConfig{journalAfter: -1, SegmentBytes: minSegmentBytes})
	for i := range 200 {
		_, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", i), faultValue(i, 600)))
		require.NoError(t, err)
		if i%3 == 0 {
			rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("k%d", i/2)))
			require.NoError(t, err)
			_, err = s.Swap(t.Context(), rec.Version, completed(rec.Key.ID, fmt.Sprintf("swapped %d", i)))
			require.NoError(t, err)
		}
	}
	for i := range 50 {
		rec, err := s.Get(t.Context(), faultKey(fmt.Sprintf("k%d", 4*i)))
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), rec.Key, rec.Version))
	}
	large, err := s.Create(t.Context(), completed("grows", "small"))
	require.NoError(t, err)
	_, err = s.Swap(t.Context(), large.Version, completed("grows", faultValue(1, directBytes)))
	require.NoError(t, err)
	require.NoError(t, s.engine.(*journalEngine).merge.wait()) // else the copy could be torn
	path = faultPath(t)
	copyFile(t, working, path)
	copyFile(t, working+journal.Suffix, path+journal.Suffix)
	return path, contents(t, s)
}

// TestReadOnlyOverJournal reads a store with a journal left over, and writes
// nothing.
func TestReadOnlyOverJournal(t *testing.T) {
	t.Parallel()
	path, want := crashedStore(t)
	read := func(name string) []byte {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		return data
	}
	file, log := read(path), read(path+journal.Suffix)
	s := openFault(t, path, BoltConfig{ReadOnly: true})
	require.Equal(t, want, contents(t, s))
	for id, text := range want {
		rec, err := s.Get(t.Context(), faultKey(id))
		require.NoError(t, err)
		require.Equal(t, text, rec.State.String()+" "+string(rec.Value))
	}
	_, err := s.Get(t.Context(), faultKey("k0"))
	require.ErrorIs(t, err, ErrNotFound)
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, len(want), info.Records)
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Zero(t, report.Problems, "%v", report.Findings)
	require.Equal(t, len(want), report.Records)
	_, err = s.Create(t.Context(), completed("new", "v"))
	require.ErrorIs(t, err, ErrReadOnly)
	require.NoError(t, s.Close())
	require.True(t, bytes.Equal(file, read(path)))
	require.True(t, bytes.Equal(log, read(path+journal.Suffix)))
}

// TestOthersRecover: whoever may write merges a journal that is left over, and
// removes it.
func TestOthersRecover(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, path string) Store{
		"service": func(t *testing.T, path string) Store { return openFault(t, path, BoltConfig{}) },
		"visitor": func(t *testing.T, path string) Store { return openFault(t, path, BoltConfig{Visitor: true}) },
		"transient": func(t *testing.T, path string) Store {
			s, err := OpenTransient(t.Context(), path, BoltConfig{})
			require.NoError(t, err)
			rec, err := s.Get(t.Context(), faultKey("k1"))
			require.NoError(t, err)
			require.NotEmpty(t, rec.Value)
			require.FileExists(t, path+journal.Suffix, "reading must not write")
			return s
		},
	}
	for name, open := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, want := crashedStore(t)
			s := open(t, path)
			stored, err := s.Create(t.Context(), completed("new", "v"))
			require.NoError(t, err)
			require.NoFileExists(t, path+journal.Suffix)
			want["new"] = "completed v"
			for rec, err := range s.Scan(t.Context(), Query{}) {
				require.NoError(t, err)
				require.Equal(t, want[rec.Key.ID], rec.State.String()+" "+string(rec.Value))
				require.LessOrEqual(t, rec.Version, stored.Version)
				delete(want, rec.Key.ID)
			}
			require.Empty(t, want)
			if b, ok := s.(*BoltStore); ok {
				require.NoError(t, b.Close())
			}
			requireSound(t, path)
		})
	}
}

// TestRecoveryRefuses: a journal that cannot be trusted keeps the store closed,
// and both files as they are.
func TestRecoveryRefuses(t *testing.T) {
	t.Parallel()
	path, _ := crashedStore(t)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	log, err := os.ReadFile(path + journal.Suffix)
	require.NoError(t, err)
	other := faultFile(t, 1, 10)
	old := faultPath(t)
	require.NoError(t, createBolt(old, time.Now()))
	tests := []struct {
		name string
		file func() []byte
		log  func(log []byte) []byte
		want error
	}{
		{"of another store", func() []byte { b, _ := os.ReadFile(other); return b }, nil, ErrJournal},
		{"damaged", nil, func(log []byte) []byte { clear(log[4096+512 : 4096+1024]); return log }, ErrCorrupt},
		{"header damaged", nil, func(log []byte) []byte { log[33] ^= 1; return log }, ErrCorrupt},
		{"cut short", nil, func(log []byte) []byte { return log[:len(log)-4096] }, ErrCorrupt},
		{"of a later build", nil, func(log []byte) []byte { log[11] = 9; return log }, ErrFormat},
		{"something else", nil, func([]byte) []byte { return bytes.Repeat([]byte("something else "), 100) }, ErrJournal},
		{"empty", nil, func([]byte) []byte { return nil }, ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			file, log := bytes.Clone(file), bytes.Clone(log)
			if tt.file != nil {
				file = tt.file()
			}
			if tt.log != nil {
				log = tt.log(log)
			}
			require.NoError(t, os.WriteFile(path, file, 0o600))
			require.NoError(t, os.WriteFile(path+journal.Suffix, log, 0o600))
			for _, c := range []BoltConfig{{}, {ReadOnly: true}, {Visitor: true}} {
				_, err := OpenBoltStore(t.Context(), path, c)
				require.ErrorIs(t, err, tt.want)
				require.ErrorContains(t, err, path+journal.Suffix)
			}
			for name, want := range map[string][]byte{path: file, path + journal.Suffix: log} {
				got, err := os.ReadFile(name)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, got), name)
			}
		})
	}
}

// TestJournalLeftovers: a creation of the journal that was cut short is cleared
// away, nothing else is.
func TestJournalLeftovers(t *testing.T) {
	t.Parallel()
	path := faultFile(t, 1, 10)
	gone, stays := path+journal.Suffix+".idem-new-0123456789abcdef", path+journal.Suffix+".idem-new-mine"
	for _, name := range []string{gone, stays} {
		require.NoError(t, os.WriteFile(name, []byte("x"), 0o600))
	}
	requireSound(t, path)
	require.NoFileExists(t, gone)
	require.FileExists(t, stays)
	require.FileExists(t, filepath.Clean(path))
}
