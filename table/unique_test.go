package table_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/table"
)

func TestUniqueColumn(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]idem.Store{"memory": newMemory(), "bolt": openBolt(t)} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			tab := newTable(t, store, byEmail())
			one := insert(t, tab, "1", account{"a@x", 1})
			insert(t, tab, "none", account{"", 1})
			insert(t, tab, "none too", account{"", 1})

			_, err := tab.Insert(ctx, "2", account{"a@x", 2})
			var taken *table.DuplicateError[account]
			require.ErrorAs(t, err, &taken)
			require.ErrorIs(t, err, table.ErrDuplicate)
			require.Equal(t, table.DuplicateError[account]{Column: "email", Row: one}, *taken)
			require.NotContains(t, err.Error(), "a@x")
			require.ErrorContains(t, err, `insert "accounts/2": its email is taken by row "1"`)
			_, err = tab.Get(ctx, "2")
			require.ErrorIs(t, err, idem.ErrNotFound)

			two := insert(t, tab, "2", account{"b@x", 2})
			_, err = tab.Update(ctx, "2", two.Version, account{"a@x", 3})
			require.ErrorIs(t, err, table.ErrDuplicate)
			require.Equal(t, two, get(t, tab, "2"), "nothing has happened to it")

			found, err := tab.GetBy(ctx, "a@x")
			require.NoError(t, err)
			require.Equal(t, one, found)
			for _, value := range []string{"c@x", ""} {
				_, err = tab.GetBy(ctx, value)
				require.ErrorIs(t, err, idem.ErrNotFound)
			}

			one, err = tab.Update(ctx, "1", one.Version, account{"c@x", 4})
			require.NoError(t, err)
			two, err = tab.Update(ctx, "2", two.Version, account{"a@x", 3})
			require.NoError(t, err, "it is free now")
			found, err = tab.GetBy(ctx, "a@x")
			require.NoError(t, err)
			require.Equal(t, two, found)

			require.NoError(t, tab.Delete(ctx, "2", two.Version))
			_, err = tab.GetBy(ctx, "a@x")
			require.ErrorIs(t, err, idem.ErrNotFound)
			insert(t, tab, "3", account{"a@x", 5})
			_, err = tab.Update(ctx, "1", one.Version, account{"", 6})
			require.NoError(t, err)
			insert(t, tab, "4", account{"c@x", 5})
			require.NoError(t, flawOf(store))
			indexes := 0
			for rec, err := range store.Scan(ctx, idem.Query{}) {
				require.NoError(t, err)
				if rec.Kind == "table.unique" {
					indexes++
				}
			}
			require.Equal(t, 2, indexes, "none is left behind")
		})
	}
	_, err := newTable(t, newMemory()).GetBy(t.Context(), "a@x")
	require.ErrorContains(t, err, "no unique column")
}

// TestColumnIsAddedLater: rows that were there are covered from their next update.
func TestColumnIsAddedLater(t *testing.T) {
	t.Parallel()
	store := newMemory()
	before, after := newTable(t, store), newTable(t, store, byEmail())
	one := insert(t, before, "1", account{Email: "a@x"})
	two := insert(t, before, "2", account{Email: "a@x"})
	_, err := after.Update(t.Context(), "1", one.Version, account{Email: "a@x"})
	require.NoError(t, err)
	_, err = after.Insert(t.Context(), "3", account{Email: "a@x"})
	require.ErrorIs(t, err, table.ErrDuplicate)
	_, err = after.Update(t.Context(), "2", two.Version, account{Email: "a@x", Cents: 1})
	require.ErrorIs(t, err, table.ErrDuplicate)
	_, err = after.Update(t.Context(), "2", two.Version, account{Email: "b@x"})
	require.NoError(t, err)
	require.NoError(t, flawOf(store))
}

// action is a call on the row as it is when it begins.
type action struct {
	name string
	id   string
	want account // the row after it
	gone bool    // there is none after it
	adds bool    // it does nothing if there is a row
	do   func(ctx context.Context, tab *table.Table[account]) error
}

// actions do everything to row 1 that can be done to its value, and want that value
// for row 2.
func actions() []action {
	insert := func(id string, a account) action {
		return action{fmt.Sprintf("insert %s with %q", id, a.Email), id, a, false, true, func(ctx context.Context, tab *table.Table[account]) error {
			_, err := tab.Insert(ctx, id, a)
			return err
		}}
	}
	update := func(id string, a account) action {
		return action{fmt.Sprintf("change %s to %q", id, a.Email), id, a, false, false, func(ctx context.Context, tab *table.Table[account]) error {
			row, err := tab.Get(ctx, id)
			if err == nil {
				_, err = tab.Update(ctx, id, row.Version, a)
			}
			return err
		}}
	}
	remove := func(id string) action {
		return action{"delete " + id, id, account{}, true, false, func(ctx context.Context, tab *table.Table[account]) error {
			row, err := tab.Get(ctx, id)
			if err == nil {
				err = tab.Delete(ctx, id, row.Version)
			}
			return err
		}}
	}
	return []action{
		insert("1", account{"a", 1}), insert("1", account{"b", 2}), insert("2", account{"a", 3}),
		update("1", account{"a", 4}), update("1", account{"b", 5}), update("1", account{"", 6}), update("2", account{"b", 7}),
		remove("1"),
	}
}

// content is all rows.
func content(t *testing.T, tab *table.Table[account]) map[string]account {
	t.Helper()
	rows := make(map[string]account)
	for row, err := range tab.All(t.Context(), "") {
		require.NoError(t, err)
		rows[row.ID] = row.Value
	}
	return rows
}

// TestCrashes dies before and after every write of every action, and again at every
// write of the next one. After each crash the row is as it was before the action or
// as it is after it, and the next callers get on with their work. Every write is
// watched.
func TestCrashes(t *testing.T) {
	t.Parallel()
	all := actions()
	for _, first := range all[:4] {
		for _, second := range all {
			t.Run(first.name+", "+second.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					crashes := 0
					for _, third := range all {
						for point := 0; crashTwice(t, first, second, third, point); point++ {
							crashes++
						}
					}
					require.Less(t, crashes, 100*len(all))
				})
			})
		}
	}
}

// crashTwice runs the first action, the second one, which dies at that point, the
// third one, which dies at every point of its own in turn, and then everything. It
// reports whether the second action has come as far as that point.
func crashTwice(t *testing.T, first, second, third action, point int) (reached bool) {
	for again, more := 0, true; more; again++ {
		store := watch()
		tab := newTable(t, store, byEmail())
		require.NoError(t, refused(first.do(t.Context(), tab)))
		reached = dieAt(t, store, second, point)
		more = dieAt(t, store, third, again)
		for _, a := range actions() {
			require.NoError(t, refused(a.do(t.Context(), tab)), "%s, after %d of %s and %d of %s", a.name, point, second.name, again, third.name)
		}
		require.NoError(t, store.broken, "after %d of %s and %d of %s", point, second.name, again, third.name)
	}
	return reached
}

// dieAt runs an action in a process that dies, and wants it done or not. An even
// point is before a write, an odd one after it. It reports whether it came so far.
func dieAt(t *testing.T, store *watchedStore, a action, point int) bool {
	t.Helper()
	tab := newTable(t, store, byEmail())
	before := content(t, tab)
	dying := &crashingStore{Store: store, left: point / 2, late: point%2 == 1}
	err := a.do(t.Context(), newTable(t, dying, byEmail()))
	after := content(t, tab)
	done := maps.Clone(before)
	if _, ok := before[a.id]; !ok || !a.adds {
		done[a.id] = a.want
	}
	if a.gone {
		delete(done, a.id)
	}
	switch {
	case err == nil:
		require.Equal(t, done, after, "%s says that it is done", a.name)
	case errors.Is(err, errCrashed):
		if !maps.Equal(before, after) {
			require.Equal(t, done, after, "half of %s was done", a.name)
		}
	default:
		require.NoError(t, refused(err))
		require.Equal(t, before, after, "%s says that it is not done", a.name)
	}
	return dying.dead
}

// refused keeps errors that are none of the right answers.
func refused(err error) error {
	if errors.Is(err, table.ErrDuplicate) || errors.Is(err, idem.ErrNotFound) {
		return nil
	}
	return err
}

// TestConcurrentValues: of callers who want one value for rows of their own, one
// gets it.
func TestConcurrentValues(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]idem.Store{"memory": watch(), "bolt": openBolt(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, store, byEmail())
			var mu sync.Mutex
			var got []string
			var wg sync.WaitGroup
			for n := range 50 {
				id := fmt.Sprint(n)
				row, err := tab.Insert(t.Context(), id, account{"start" + id, n})
				require.NoError(t, err)
				wg.Go(func() {
					var err error
					if n%2 == 0 {
						_, err = tab.Insert(t.Context(), "new"+id, account{"a@x", n})
					} else {
						_, err = tab.Update(t.Context(), id, row.Version, account{"a@x", n})
					}
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						got = append(got, id)
					} else if !errors.Is(err, table.ErrDuplicate) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.Len(t, got, 1)
			require.NoError(t, flawOf(store))
			if watched, ok := store.(*watchedStore); ok {
				require.NoError(t, watched.broken)
			}
		})
	}
}

// TestUnfinishedChangeIsEnded: a change that nobody will finish is ended, for the
// row and for the value, after a while.
func TestUnfinishedChangeIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := watch()
		_, err := newTable(t, &crashingStore{Store: store, left: 2}, byEmail()).Insert(t.Context(), "1", account{"a@x", 1})
		require.ErrorIs(t, err, errCrashed)
		tab := newTable(t, store, byEmail())
		_, err = tab.Get(t.Context(), "1")
		require.ErrorIs(t, err, idem.ErrNotFound, "readers do not wait")
		began := time.Now()
		hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = tab.Insert(hurried, "2", account{"a@x", 2})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		insert(t, tab, "2", account{"a@x", 2})
		require.Less(t, time.Since(began), 3*time.Second)
		began = time.Now()
		_, err = tab.Insert(t.Context(), "1", account{"a@x", 1})
		require.ErrorIs(t, err, table.ErrDuplicate)
		require.Zero(t, time.Since(began), "it was ended")
		require.NoError(t, store.broken)
	})
}

// TestEndedChangeTakesNothing: a caller whose change was ended goes on as if it was
// not, just when another change of the row has taken the value.
func TestEndedChangeTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := watch()
		var s steppers
		s.start(3, store, func(n int, on idem.Store) {
			id := []string{"1", "1", "2"}[n]
			if _, err := newTable(t, on, byEmail()).Insert(t.Context(), id, account{"a@x", n}); !errors.Is(err, table.ErrDuplicate) && err != nil {
				t.Error(err)
			}
		})
		require.False(t, s.turn(0, 1, true), "its row is pending")
		require.False(t, s.turn(1, 3, true), "it has ended that, and its own row is pending and has the value")
		require.False(t, s.turn(0, 12, false), "it goes on, and does not lose patience")
		for _, n := range []int{2, 1, 0} {
			require.True(t, s.turn(n, 1000, false))
		}
		require.NoError(t, store.broken)
	})
}

// movingStore lets somebody else work after the first read of an index record.
type movingStore struct {
	*idem.BoltStore
	once sync.Once
	move func()
}

func (s *movingStore) Get(ctx context.Context, key idem.Key) (idem.Record, error) {
	rec, err := s.BoltStore.Get(ctx, key)
	if rec.Kind == "table.unique" {
		s.once.Do(s.move)
	}
	return rec, err
}

// TestGetByWhileValueMoves: a transaction moves the value to another row, so that
// there is no time at which none has it.
func TestGetByWhileValueMoves(t *testing.T) {
	t.Parallel()
	store := openBolt(t)
	tab := newTable(t, store, byEmail())
	one, two := insert(t, tab, "1", account{"a@x", 1}), insert(t, tab, "2", account{"", 2})
	moving := &movingStore{BoltStore: store, move: func() {
		require.NoError(t, store.Update(t.Context(), func(tx *idem.Tx) error {
			tab := tab.On(tx.Records())
			if _, err := tab.Update(t.Context(), "1", one.Version, account{"", 1}); err != nil {
				return err
			}
			_, err := tab.Update(t.Context(), "2", two.Version, account{"a@x", 2})
			return err
		}))
	}}
	row, err := newTable(t, moving, byEmail()).GetBy(t.Context(), "a@x")
	require.NoError(t, err)
	require.Equal(t, "2", row.ID)
}
