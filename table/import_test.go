package table_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/table"
)

// old is a row of an older system.
type old struct {
	id string
	account
}

func rows(list ...old) iter.Seq2[string, account] {
	return func(yield func(string, account) bool) {
		for _, r := range list {
			if !yield(r.id, r.account) {
				return
			}
		}
	}
}

func numbered(n int) iter.Seq2[string, account] {
	return func(yield func(string, account) bool) {
		for i := range n {
			if !yield(fmt.Sprint(i), account{fmt.Sprintf("%d@x", i), i}) {
				return
			}
		}
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]idem.Store{"memory": newMemory(), "bolt": openBolt(t)} {
		t.Run(name, func(t *testing.T) {
			tab := newTable(t, store, byEmail())
			insert(t, tab, "there", account{"there@x", 1})
			input := rows(
				old{"1", account{"a@x", 1}},
				old{"there", account{"there@x", 1}},
				old{"1", account{"a@x", 1}},
				old{"1", account{"", 2}},
				old{"2", account{"a@x", 3}},
				old{"3", account{"there@x", 3}},
				old{"", account{"b@x", 1}},
				old{"a\nb", account{"b@x", 1}},
				old{"4", account{"b@x", 1}},
			)
			want := table.ImportReport{
				Inserted: 2, Repeated: 2, Duplicated: 3, Refused: 2,
				Duplicates: []table.Duplicate{
					{ID: "1", Row: "1", Differ: []string{"cents", "email"}},
					{ID: "2", Column: "email", Row: "1"},
					{ID: "3", Column: "email", Row: "there"},
				},
			}
			for range 2 {
				report, err := tab.Import(t.Context(), input)
				require.NoError(t, err)
				require.Len(t, report.Refusals, 2)
				for n, id := range []string{"", "a\nb"} {
					require.Equal(t, id, report.Refusals[n].ID)
					require.ErrorIs(t, report.Refusals[n].Err, idem.ErrInvalidKey)
				}
				report.Refusals = nil
				require.Equal(t, want, report)
				want.Inserted, want.Repeated = 0, 4 // the second time
			}
			require.Equal(t, map[string]account{"there": {"there@x", 1}, "1": {"a@x", 1}, "4": {"b@x", 1}}, content(t, tab))
			require.NoError(t, flawOf(store))
		})
	}
}

// TestImportNamesTheFirst of very many, and counts all.
func TestImportNamesTheFirst(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]idem.Store{"memory": newMemory(), "bolt": openBolt(t)} {
		t.Run(name, func(t *testing.T) {
			tab := newTable(t, store)
			report, err := tab.Import(t.Context(), numbered(1000))
			require.NoError(t, err)
			require.Equal(t, table.ImportReport{Inserted: 1000}, report)
			report, err = tab.Import(t.Context(), func(yield func(string, account) bool) {
				for id, a := range numbered(1000) {
					a.Cents++
					_ = yield(id, a) && yield("\n"+id, a)
				}
			})
			require.NoError(t, err)
			require.Equal(t, 1000, report.Duplicated)
			require.Equal(t, 1000, report.Refused)
			require.Len(t, report.Duplicates, table.MaxReported)
			require.Len(t, report.Refusals, table.MaxReported)
			require.Equal(t, table.Duplicate{ID: "99", Row: "99", Differ: []string{"cents"}}, report.Duplicates[99])
		})
	}
}

// TestImportGoesOn dies at every write and is run again.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count = 5
		for point := 0; ; point++ {
			store := watch()
			dying := &crashingStore{Store: store, left: point / 2, late: point%2 == 1}
			first, err := newTable(t, dying, byEmail()).Import(t.Context(), numbered(count))
			if !dying.dead {
				require.NoError(t, err)
				require.Equal(t, 2*3*count, point, "three writes each")
				return
			}
			require.ErrorIs(t, err, errCrashed)
			second, err := newTable(t, store, byEmail()).Import(t.Context(), numbered(count))
			require.NoError(t, err)
			require.Equal(t, count, second.Inserted+second.Repeated)
			require.GreaterOrEqual(t, second.Repeated, first.Inserted)
			require.Zero(t, second.Duplicated)
			require.NoError(t, store.broken)
			require.Len(t, content(t, newTable(t, store, byEmail())), count)
		}
	})
}

// TestImportEnds with the input, when its context does, and with what was done.
func TestImportEnds(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]idem.Store{"memory": newMemory(), "bolt": openBolt(t)} {
		t.Run(name, func(t *testing.T) {
			tab := newTable(t, store, byEmail())
			ctx, cancel := context.WithCancel(t.Context())
			asked := 0
			report, err := tab.Import(ctx, func(yield func(string, account) bool) {
				for id, a := range numbered(100_000) {
					if asked++; asked == 700 {
						cancel()
					}
					if !yield(id, a) {
						return
					}
				}
			})
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, 512, report.Inserted, "two batches")
			require.Less(t, asked, 1000, "it asks for no more")
			require.Len(t, content(t, tab), report.Inserted)
		})
	}
}

// TestImportCompares what a value means, not how it is written.
func TestImportCompares(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		one, two string
		same     bool
		differ   []string
	}{
		{"order and numbers", `{"a":1.0,"b":"é"}`, `{"b":"\u00e9","a":1}`, true, nil},
		{"more and less", `{"a":1,"b":2,"d":4}`, `{"a":1,"c":3,"d":5}`, false, []string{"b", "c", "d"}},
		{"not objects", `[1]`, `[2]`, false, nil},
		{"null", `null`, `{}`, false, nil},
		{"repeated names, the same", `{"a":1,"a":2}`, `{"a":1,"a":2}`, true, nil},
		{"repeated names, others", `{"a":1,"a":2}`, `{"a":2,"a":2}`, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tab, err := table.New[json.RawMessage](newMemory(), scope)
			require.NoError(t, err)
			report, err := tab.Import(t.Context(), func(yield func(string, json.RawMessage) bool) {
				_ = yield("1", json.RawMessage(tt.one)) && yield("1", json.RawMessage(tt.two))
			})
			require.NoError(t, err)
			want := table.ImportReport{Inserted: 1, Repeated: 1}
			if !tt.same {
				want = table.ImportReport{Inserted: 1, Duplicated: 1, Duplicates: []table.Duplicate{{ID: "1", Row: "1", Differ: tt.differ}}}
			}
			require.Equal(t, want, report)
		})
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	store := newMemory()
	_, err := store.Create(t.Context(), idem.Record{
		Key: idem.Key{Scope: "numbers", ID: "foreign"}, State: idem.Completed, Kind: "func", Value: []byte("1"), ExpiresAt: store.Now().Add(time.Hour),
	})
	require.NoError(t, err)
	numbers, err := table.New[float64](store, "numbers")
	require.NoError(t, err)
	report, err := numbers.Import(t.Context(), func(yield func(string, float64) bool) {
		_ = yield("none", math.NaN()) && yield("foreign", 1) && yield("good", 1)
	})
	require.NoError(t, err)
	require.Equal(t, 1, report.Inserted)
	require.Equal(t, 2, report.Refused)
	require.ErrorIs(t, report.Refusals[0].Err, table.ErrInvalidValue)
	require.ErrorIs(t, report.Refusals[1].Err, table.ErrForeign)

	full, err := table.New[string](idem.NewMemoryStore(idem.MemoryConfig{MaxRecords: 2}), "text")
	require.NoError(t, err)
	report, err = full.Import(t.Context(), func(yield func(string, string) bool) {
		_ = yield("1", "") && yield("2", "") && yield("3", "") && yield("4", "")
	})
	require.ErrorIs(t, err, idem.ErrFull)
	require.ErrorContains(t, err, `import into "text": "3"`)
	require.Equal(t, table.ImportReport{Inserted: 2}, report)
	require.False(t, errors.Is(err, idem.ErrInvalidKey))
}
