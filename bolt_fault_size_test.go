package idem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSizes stores fields at, just below and just above each limit: an exact
// round trip, through a restart, or a typed error with nothing written. Empty
// and absent values stay apart.
func TestSizes(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("é", n/2) + strings.Repeat("x", n%2) }
	value := func(n int) func(*Record) { return func(r *Record) { r.Value = []byte(faultValue(0, n)) } }
	tests := []struct {
		name   string
		change func(*Record)
		want   error
	}{
		{"value nil", func(r *Record) { r.Value = nil }, nil},
		{"value empty", func(r *Record) { r.Value = []byte{} }, nil},
		{"value of one byte", value(1), nil},
		{"value of a page", value(4096), nil},
		{"value one below the limit", value(MaxValueBytes - 1), nil},
		{"value at the limit", value(MaxValueBytes), nil},
		{"value above the limit", value(MaxValueBytes + 1), ErrInvalidRecord},
		{"id at the limit", func(r *Record) { r.Key.ID = long(MaxIDBytes) }, nil},
		{"id above the limit", func(r *Record) { r.Key.ID = long(MaxIDBytes + 1) }, ErrInvalidKey},
		{"id of 1 MiB", func(r *Record) { r.Key.ID = long(1 << 20) }, ErrInvalidKey},
		{"id empty", func(r *Record) { r.Key.ID = "" }, ErrInvalidKey},
		{"id with NUL", func(r *Record) { r.Key.ID = "a\x00b" }, ErrInvalidKey},
		{"id not UTF-8", func(r *Record) { r.Key.ID = "a\xffb" }, ErrInvalidKey},
		{"id with slashes", func(r *Record) { r.Key.ID = "//a/" }, nil},
		{"scope at the limit", func(r *Record) { r.Key.Scope = strings.Repeat("s", MaxScopeBytes) }, nil},
		{"scope above the limit", func(r *Record) { r.Key.Scope = strings.Repeat("s", MaxScopeBytes+1) }, ErrInvalidKey},
		{"scope with a slash", func(r *Record) { r.Key.Scope = "a/b" }, ErrInvalidKey},
		{"error at the limit", func(r *Record) { r.Error = long(maxErrorBytes) }, nil},
		{"error above the limit", func(r *Record) { r.Error = long(maxErrorBytes + 1) }, ErrInvalidRecord},
		{"note above the limit", func(r *Record) { r.Note = long(maxNoteBytes + 1) }, ErrInvalidRecord},
		{"owner at the limit", func(r *Record) { r.Owner = long(maxOwnerBytes) }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := faultPath(t)
			s := openFault(t, path, BoltConfig{CacheBytes: -1})
			before := txid(t, s)
			rec := completed("k", "")
			tt.change(&rec)
			stored, err := s.Create(t.Context(), rec)
			require.ErrorIs(t, err, tt.want)
			if tt.want != nil {
				require.Equal(t, before, txid(t, s), "a refused record was written")
				require.Equal(t, Record{}, stored)
				_, err := s.Swap(t.Context(), 1, rec)
				require.ErrorIs(t, err, tt.want)
				return
			}
			require.NoError(t, s.Close())
			s = openFault(t, path, BoltConfig{})
			for range 2 { // from the file, then from the cache
				got, err := s.Get(t.Context(), rec.Key)
				require.NoError(t, err)
				require.Equal(t, rec.Value == nil, got.Value == nil, "nil and empty must stay apart")
				require.Equal(t, string(rec.Value), string(got.Value))
				got.Value, got.Size = rec.Value, rec.Size
				rec.Version = got.Version
				require.Equal(t, rec, got)
			}
		})
	}
}

// TestKeysDoNotCollide stores keys whose halves run together to the same text,
// or nearly so: each must keep its own record.
func TestKeysDoNotCollide(t *testing.T) {
	t.Parallel()
	keys := []Key{{"a", "bc"}, {"ab", "c"}, {"a", "b/c"}, {"a", "/bc"}, {"a", "b"}, {"a", "bc "}, {"A", "bc"}, {"a", "b\u00e7"}, {"a", "bc\u0327"}}
	path := faultPath(t)
	s := openFault(t, path, BoltConfig{})
	for _, key := range keys {
		rec := completed("", key.String())
		rec.Key = key
		_, err := s.Create(t.Context(), rec)
		require.NoError(t, err, key)
	}
	require.NoError(t, s.Close())
	s = openFault(t, path, BoltConfig{})
	for _, key := range keys {
		rec, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, key.String(), string(rec.Value))
		require.NoError(t, s.Delete(t.Context(), key, rec.Version))
	}
	require.Empty(t, contents(t, s))
}
