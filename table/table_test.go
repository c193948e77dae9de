package table_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/table"
)

const scope = "accounts"

type account struct {
	Email string `json:"email,omitempty"`
	Cents int    `json:"cents"`
}

func byEmail() table.Option {
	return table.WithUnique("email", func(a account) string { return a.Email })
}

func newTable(t testing.TB, store idem.Store, opts ...table.Option) *table.Table[account] {
	t.Helper()
	tab, err := table.New[account](store, scope, opts...)
	require.NoError(t, err)
	return tab
}

func newMemory() *idem.MemoryStore { return idem.NewMemoryStore(idem.MemoryConfig{}) }

func openBolt(t testing.TB) *idem.BoltStore {
	t.Helper()
	s, err := idem.OpenBoltStore(t.Context(), filepath.Join(t.TempDir(), "table.db"), idem.BoltConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// onTables runs a test on tables with and without a unique column, on every kind
// of store.
func onTables(t *testing.T, test func(t *testing.T, tab *table.Table[account])) {
	for name, open := range map[string]func(testing.TB) idem.Store{
		"memory": func(testing.TB) idem.Store { return newMemory() },
		"bolt":   func(t testing.TB) idem.Store { return openBolt(t) },
		"transient": func(t testing.TB) idem.Store {
			s, err := idem.OpenTransient(t.Context(), filepath.Join(t.TempDir(), "table.db"), idem.BoltConfig{LockTimeout: time.Minute})
			require.NoError(t, err)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newTable(t, open(t)))
		})
		t.Run(name+" with a unique column", func(t *testing.T) {
			t.Parallel()
			test(t, newTable(t, open(t), byEmail()))
		})
	}
}

func insert(t testing.TB, tab *table.Table[account], id string, a account) table.Row[account] {
	t.Helper()
	row, err := tab.Insert(t.Context(), id, a)
	require.NoError(t, err)
	return row
}

func get(t testing.TB, tab *table.Table[account], id string) table.Row[account] {
	t.Helper()
	row, err := tab.Get(t.Context(), id)
	require.NoError(t, err)
	return row
}

func TestTable(t *testing.T) {
	t.Parallel()
	onTables(t, func(t *testing.T, tab *table.Table[account]) {
		ctx := t.Context()
		_, err := tab.Get(ctx, "1")
		require.ErrorIs(t, err, idem.ErrNotFound)
		require.ErrorContains(t, err, `get "accounts/1"`)
		_, err = tab.Update(ctx, "1", 1, account{})
		require.ErrorIs(t, err, idem.ErrNotFound)
		require.ErrorIs(t, tab.Delete(ctx, "1", 1), idem.ErrNotFound)

		row := insert(t, tab, "1", account{"a@x", 1})
		require.False(t, row.Existing)
		require.Equal(t, account{"a@x", 1}, row.Value)
		require.Equal(t, row, get(t, tab, "1"))
		again := insert(t, tab, "1", account{"b@x", 2})
		require.True(t, again.Existing)
		again.Existing = false
		require.Equal(t, row, again)

		changed, err := tab.Update(ctx, "1", row.Version, account{"b@x", 3})
		require.NoError(t, err)
		require.Equal(t, row.Version+1, changed.Version)
		require.Equal(t, row.CreatedAt, changed.CreatedAt)
		require.Equal(t, changed, get(t, tab, "1"))

		for _, version := range []uint64{0, row.Version, changed.Version + 1, math.MaxUint64} {
			_, err = tab.Update(ctx, "1", version, account{"c@x", 4})
			var conflict *table.ConflictError[account]
			require.ErrorAs(t, err, &conflict)
			require.ErrorIs(t, err, idem.ErrConflict)
			require.Equal(t, table.ConflictError[account]{Version: version, Row: changed}, *conflict)
			require.ErrorIs(t, tab.Delete(ctx, "1", version), idem.ErrConflict)
		}
		require.NoError(t, tab.Delete(ctx, "1", changed.Version))
		_, err = tab.Get(ctx, "1")
		require.ErrorIs(t, err, idem.ErrNotFound)
		insert(t, tab, "1", account{"b@x", 3})
		_, err = tab.Update(ctx, "1", changed.Version, account{"c@x", 4})
		require.ErrorIs(t, err, idem.ErrConflict, "it is another row")
	})
}

// TestConcurrentInserts: of 100 one adds the row, and all get that one.
func TestConcurrentInserts(t *testing.T) {
	t.Parallel()
	onTables(t, func(t *testing.T, tab *table.Table[account]) {
		rows := make([]table.Row[account], 100)
		var wg sync.WaitGroup
		for n := range rows {
			wg.Go(func() {
				var err error
				if rows[n], err = tab.Insert(t.Context(), "1", account{fmt.Sprint(n), n}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		stored := get(t, tab, "1")
		added := 0
		for n, row := range rows {
			if !row.Existing {
				added++
				require.Equal(t, n, row.Value.Cents)
			}
			row.Existing = false
			require.Equal(t, stored, row)
		}
		require.Equal(t, 1, added)
	})
}

// TestConcurrentUpdates: of 50 that have seen one version one wins, and the others
// get what it has written.
func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	onTables(t, func(t *testing.T, tab *table.Table[account]) {
		row := insert(t, tab, "1", account{"start", -1})
		won, lost := make([]*table.Row[account], 50), make([]*table.ConflictError[account], 50)
		var wg sync.WaitGroup
		for n := range won {
			wg.Go(func() {
				got, err := tab.Update(t.Context(), "1", row.Version, account{fmt.Sprint(n), n})
				if err == nil {
					won[n] = &got
				} else if !errors.As(err, &lost[n]) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		stored := get(t, tab, "1")
		winner := slices.IndexFunc(won, func(r *table.Row[account]) bool { return r != nil })
		require.Equal(t, stored.Value.Cents, winner)
		for n := range won {
			if n == winner {
				require.Equal(t, stored, *won[n])
			} else {
				require.Nil(t, won[n])
				require.Equal(t, stored, lost[n].Row)
			}
		}
	})
}

// TestNoLostUpdates: callers add to a sum, each on what it has read, or on what the
// conflict has told it.
func TestNoLostUpdates(t *testing.T) {
	t.Parallel()
	onTables(t, func(t *testing.T, tab *table.Table[account]) {
		row := insert(t, tab, "1", account{"a@x", 0})
		const callers, times = 8, 10
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				seen := row
				for added := 0; added < times; {
					got, err := tab.Update(t.Context(), "1", seen.Version, account{"a@x", seen.Value.Cents + 1})
					var conflict *table.ConflictError[account]
					switch {
					case err == nil:
						seen = got
						added++
					case errors.As(err, &conflict):
						seen = conflict.Row
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, callers*times, get(t, tab, "1").Value.Cents)
	})
}

func TestAll(t *testing.T) {
	t.Parallel()
	store := newMemory()
	tab := newTable(t, store, byEmail())
	for _, id := range []string{"b/2", "a", "b/1", "c", "b"} {
		insert(t, tab, id, account{Email: id})
	}
	other, err := table.New[account](store, scope+".old")
	require.NoError(t, err)
	_, err = other.Insert(t.Context(), "b/3", account{})
	require.NoError(t, err)
	ids := func(prefix string) (ids []string) {
		for row, err := range tab.All(t.Context(), prefix) {
			require.NoError(t, err)
			require.Equal(t, get(t, tab, row.ID), row)
			ids = append(ids, row.ID)
		}
		return ids
	}
	require.Equal(t, []string{"a", "b", "b/1", "b/2", "c"}, ids(""))
	require.Equal(t, []string{"b/1", "b/2"}, ids("b/"))
	require.Empty(t, ids("d"))
	for range tab.All(t.Context(), "") {
		break // and nothing is left behind
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for row, err := range tab.All(ended, "") {
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, row.ID)
	}
}

func TestRetentionIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(t, newMemory(), byEmail(), table.WithRetention(time.Hour))
		row := insert(t, tab, "1", account{"a@x", 1})
		for range 3 {
			time.Sleep(50 * time.Minute)
			var err error
			row, err = tab.Update(t.Context(), "1", row.Version, account{"a@x", row.Value.Cents + 1})
			require.NoError(t, err)
		}
		time.Sleep(time.Hour - time.Microsecond)
		_, err := tab.Insert(t.Context(), "2", account{Email: "a@x"})
		require.ErrorIs(t, err, table.ErrDuplicate, "its value is taken for as long as the row is there")
		time.Sleep(time.Millisecond)
		_, err = tab.Get(t.Context(), "1")
		require.ErrorIs(t, err, idem.ErrNotFound)
		insert(t, tab, "2", account{Email: "a@x"})
	})
}
