package table_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/table"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	tab := newTable(t, newMemory(), byEmail())
	row := insert(t, tab, "1", account{Email: "a@x"})
	for _, id := range []string{"", "a\nb", "\xff", strings.Repeat("1", 256)} {
		_, err := tab.Insert(t.Context(), id, account{})
		require.ErrorIs(t, err, idem.ErrInvalidKey)
		_, err = tab.Update(t.Context(), id, 1, account{})
		require.ErrorIs(t, err, idem.ErrInvalidKey)
		require.ErrorIs(t, tab.Delete(t.Context(), id, 1), idem.ErrInvalidKey)
		_, err = tab.Get(t.Context(), id)
		require.ErrorIs(t, err, idem.ErrInvalidKey)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tab.Update(ended, "1", row.Version, account{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, row, get(t, tab, "1"))
}

// oneWay can be written, and not read.
type oneWay struct{}

func (oneWay) MarshalJSON() ([]byte, error)  { return []byte(`{}`), nil }
func (*oneWay) UnmarshalJSON(b []byte) error { return errors.New("no") }

func TestInvalidValues(t *testing.T) {
	t.Parallel()
	store := newMemory()
	text, err := table.New[string](store, "text")
	require.NoError(t, err)
	_, err = text.Insert(t.Context(), "1", strings.Repeat("x", table.MaxValueBytes-1))
	require.ErrorIs(t, err, table.ErrInvalidValue, "two quotes")
	_, err = text.Insert(t.Context(), "1", strings.Repeat("x", table.MaxValueBytes-2))
	require.NoError(t, err)

	numbers, err := table.New[float64](store, "numbers")
	require.NoError(t, err)
	_, err = numbers.Insert(t.Context(), "1", math.NaN())
	require.ErrorIs(t, err, table.ErrInvalidValue)
	odd, err := table.New[oneWay](store, "odd")
	require.NoError(t, err)
	_, err = odd.Insert(t.Context(), "1", oneWay{})
	require.ErrorIs(t, err, table.ErrInvalidValue)

	pointers, err := table.New[*account](store, "pointers")
	require.NoError(t, err)
	nothing, err := pointers.Insert(t.Context(), "1", nil)
	require.NoError(t, err)
	require.Nil(t, nothing.Value)
	got, err := pointers.Get(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, nothing, got)
}

// TestUnreadableRows are named, and neither absent nor overwritten.
func TestUnreadableRows(t *testing.T) {
	t.Parallel()
	store := newMemory()
	tab := newTable(t, store, byEmail())
	insert(t, tab, "0", account{})
	tests := []struct {
		id, kind, value string
		want            error
	}{
		{"1", "func", `{"version":1,"value":{}}`, table.ErrForeign},
		{"2", "table", `{"version":1,"value":"text"}`, idem.ErrUndecodable},
		{"3", "table", `{"version":1}`, idem.ErrUndecodable},
		{"4", "table", `?`, idem.ErrUndecodable},
	}
	for _, tt := range tests {
		_, err := store.Create(t.Context(), idem.Record{
			Key: idem.Key{Scope: scope, ID: tt.id}, State: idem.Completed, Kind: tt.kind, Value: []byte(tt.value), ExpiresAt: store.Now().Add(time.Hour),
		})
		require.NoError(t, err)
		for _, call := range []func() error{
			func() error { _, err := tab.Get(t.Context(), tt.id); return err },
			func() error { _, err := tab.Insert(t.Context(), tt.id, account{}); return err },
			func() error { _, err := tab.Update(t.Context(), tt.id, 1, account{}); return err },
			func() error { return tab.Delete(t.Context(), tt.id, 1) },
		} {
			err := call()
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, `"accounts/`+tt.id+`"`)
		}
	}
	insert(t, tab, "5", account{})
	var good []string
	bad := make(map[string]error)
	for row, err := range tab.All(t.Context(), "") {
		if err != nil {
			bad[row.ID] = err
		} else {
			good = append(good, row.ID)
		}
	}
	require.Equal(t, []string{"0", "5"}, good)
	require.Len(t, bad, len(tests))
	for _, tt := range tests {
		require.ErrorIs(t, bad[tt.id], tt.want)
	}
}

func TestNewIsChecked(t *testing.T) {
	t.Parallel()
	store := newMemory()
	length := func(a account) string { return fmt.Sprint(len(a.Email)) }
	tests := []struct {
		name  string
		store idem.Store
		scope string
		opts  []table.Option
		want  string
	}{
		{"no store", nil, scope, nil, "needs a store"},
		{"no scope", store, "", nil, "the scope is empty"},
		{"scope with a slash", store, "a/b", nil, "the scope may hold only"},
		{"no retention", store, scope, []table.Option{table.WithRetention(0)}, "Retention must be positive"},
		{"endless retention", store, scope, []table.Option{table.WithRetention(idem.MaxRetention + 1)}, "Retention must be at most"},
		{"two columns", store, scope, []table.Option{byEmail(), table.WithUnique("length", length)}, `one unique column, not ["email" "length"]`},
		{"column of another type", store, scope, []table.Option{table.WithUnique("n", func(int) string { return "" })}, "needs a function of table_test.account, not func(int) string"},
		{"no function", store, scope, []table.Option{table.WithUnique[account]("n", nil)}, "needs a function"},
		{"column without a name", store, scope, []table.Option{table.WithUnique("", length)}, "needs 1 to 32"},
		{"long name of a column", store, scope, []table.Option{table.WithUnique(strings.Repeat("n", 33), length)}, "needs 1 to 32"},
		{"strange name of a column", store, scope, []table.Option{table.WithUnique("e mail", length)}, `unique column "e mail" of "accounts": invalid key`},
		{"no room for the column", store, strings.Repeat("s", 120), []table.Option{byEmail()}, "at most 128"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tab, err := table.New[account](tt.store, tt.scope, tt.opts...)
			require.ErrorContains(t, err, tt.want)
			require.Nil(t, tab)
		})
	}
}

// TestRecords: what is stored is what the package documentation says.
func TestRecords(t *testing.T) {
	t.Parallel()
	store := newMemory()
	tab := newTable(t, store, byEmail())
	row := insert(t, tab, "1", account{"a@x", 5})
	var keys []string
	for rec, err := range store.Scan(t.Context(), idem.Query{}) {
		require.NoError(t, err)
		keys = append(keys, rec.Key.String())
		require.Equal(t, idem.Completed, rec.State)
		require.Equal(t, row.UpdatedAt.Add(idem.MaxRetention), rec.ExpiresAt)
		switch rec.Kind {
		case "table":
			require.Equal(t, fmt.Sprintf(`{"version":%d,"value":{"email":"a@x","cents":5}}`, row.Version), string(rec.Value))
		case "table.unique":
			var v map[string]string
			require.NoError(t, json.Unmarshal(rec.Value, &v))
			require.Equal(t, "1", v["row"])
			require.NotContains(t, rec.Key.ID+string(rec.Value), "a@x", "it may be personal data")
		default:
			t.Error(rec.Kind)
		}
	}
	require.Len(t, keys, 2)
	require.True(t, slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "accounts:unique:email/") }))
}
