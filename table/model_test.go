package table_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/table"
)

// Rows and values that the models work with. The last value is none.
const (
	modelRows   = 2
	modelValues = 1
)

// op is a call.
type op struct {
	method  string // "insert", "update", "delete", "get" or "getby"
	row     int
	version uint64
	email   string
}

// said is the answer to a call: a row, if there is one, and what it was.
type said struct {
	what    string // "ok", "existing", "conflict", "duplicate" or "not found"
	row     int
	version uint64
	email   string
}

// modelRow is a row of the model. Its version is 0 if there is none.
type modelRow struct {
	version uint64
	email   string
}

// modelTable is the model of a table.
type modelTable [modelRows]modelRow

func (m *modelTable) says(what string, row int) said {
	return said{what, row, m[row].version, m[row].email}
}

func (m *modelTable) holder(email string) (int, bool) {
	row := slices.IndexFunc(m[:], func(r modelRow) bool { return r.version != 0 && r.email == email })
	return row, row >= 0 && email != ""
}

// step says what the answer to a call must be, and what the table is after it. The
// version of a row that is inserted is taken from the answer.
func (m modelTable) step(o op, version uint64) (said, modelTable) {
	row := &m[o.row]
	holder, taken := m.holder(o.email)
	switch {
	case o.method == "getby" && taken:
		return m.says("ok", holder), m
	case o.method == "insert" && row.version != 0:
		return m.says("existing", o.row), m
	case o.method == "getby", o.method != "insert" && row.version == 0:
		return said{what: "not found"}, m
	case o.method == "get":
		return m.says("ok", o.row), m
	case o.method != "insert" && row.version != o.version:
		return m.says("conflict", o.row), m
	case o.method == "delete":
		*row = modelRow{}
		return said{what: "ok"}, m
	case taken && holder != o.row:
		return m.says("duplicate", holder), m
	case version == 0, o.method == "update" && version != row.version+1:
		return said{what: "another version"}, m
	}
	*row = modelRow{version, o.email}
	return m.says("ok", o.row), m
}

// do makes the call.
func (o op) do(t *testing.T, tab *table.Table[account]) said {
	id, value := fmt.Sprint(o.row), account{Email: o.email}
	var row table.Row[account]
	var err error
	switch o.method {
	case "insert":
		row, err = tab.Insert(t.Context(), id, value)
	case "update":
		row, err = tab.Update(t.Context(), id, o.version, value)
	case "delete":
		if err = tab.Delete(t.Context(), id, o.version); err == nil {
			return said{what: "ok"}
		}
	case "get":
		row, err = tab.Get(t.Context(), id)
	case "getby":
		row, err = tab.GetBy(t.Context(), o.email)
	}
	return answer(row, err)
}

func answer(row table.Row[account], err error) said {
	what := "ok"
	var conflict *table.ConflictError[account]
	var duplicate *table.DuplicateError[account]
	switch {
	case errors.As(err, &conflict):
		what, row = "conflict", conflict.Row
	case errors.As(err, &duplicate):
		what, row = "duplicate", duplicate.Row
	case errors.Is(err, idem.ErrNotFound):
		return said{what: "not found"}
	case err != nil:
		return said{what: err.Error()}
	case row.Existing:
		what = "existing"
	}
	return said{what, int(row.ID[0] - '0'), row.Version, row.Value.Email}
}

var methods = []string{"insert", "insert", "insert", "update", "update", "update", "delete", "get", "getby"}

func email(n int) string {
	if n == modelValues {
		return ""
	}
	return fmt.Sprintf("%c@x", 'a'+n)
}

// TestTableFollowsModel does random things one after the other.
func TestTableFollowsModel(t *testing.T) {
	t.Parallel()
	bolt := openBolt(t)
	rounds := 0
	rapid.Check(t, func(rt *rapid.T) {
		rounds++
		inFile, err := table.New[account](bolt, fmt.Sprintf("round-%d", rounds), byEmail())
		require.NoError(rt, err)
		for _, tab := range []*table.Table[account]{newTable(t, watch(), byEmail()), inFile} {
			var model modelTable
			for range rapid.IntRange(1, 20).Draw(rt, "calls") {
				o := op{
					method: rapid.SampledFrom(methods).Draw(rt, "method"),
					row:    rapid.IntRange(0, modelRows-1).Draw(rt, "row"),
					email:  email(rapid.IntRange(0, modelValues).Draw(rt, "email")),
				}
				o.version = model[o.row].version
				if rapid.IntRange(0, 3).Draw(rt, "version") == 0 {
					o.version--
				}
				got := o.do(t, tab)
				var want said
				want, model = model.step(o, got.version)
				require.Equal(rt, want, got, "%+v", o)
			}
			want := make(map[string]account)
			for n, row := range model {
				if row.version != 0 {
					want[fmt.Sprint(n)] = account{Email: row.email}
				}
			}
			require.True(rt, maps.Equal(want, content(t, tab)))
		}
	})
}

// tableModel checks a whole table: its unique column joins the rows.
var tableModel = porcupine.Model{
	Init: func() any { return modelTable{} },
	Step: func(state, input, output any) (bool, any) {
		got := output.(said)
		want, after := state.(modelTable).step(input.(op), got.version)
		return want == got, after
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
}

// recorder keeps what clients did and saw. Calls are ordered by a counter, because
// the clock of a bubble stands still.
type recorder struct {
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// client makes random calls.
func (r *recorder) client(t *testing.T, n int, tab *table.Table[account], calls int, random *rand.Rand) {
	var seen [modelRows]uint64
	for range calls {
		o := op{method: methods[random.IntN(len(methods))], row: random.IntN(modelRows), email: email(random.IntN(modelValues + 1))}
		o.version = seen[o.row]
		call := r.clock.Add(1)
		got := o.do(t, tab)
		done := porcupine.Operation{ClientId: n, Input: o, Call: call, Output: got, Return: r.clock.Add(1)}
		if got.version != 0 {
			seen[got.row] = got.version
		}
		r.mu.Lock()
		r.ops = append(r.ops, done)
		r.mu.Unlock()
	}
}

func requireLinearizable(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(tableModel, history, 20*time.Second))
}

func TestTableIsLinearizable(t *testing.T) {
	t.Parallel()
	onTables(t, func(t *testing.T, tab *table.Table[account]) {
		if _, err := tab.GetBy(t.Context(), "a@x"); !errors.Is(err, idem.ErrNotFound) {
			return // the model has a unique column
		}
		var r recorder
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() { r.client(t, n, tab, 15, rand.New(rand.NewPCG(uint64(n), 1))) })
		}
		wg.Wait()
		requireLinearizable(t, r.ops)
	})
}

// TestTableInTurns stops clients at any of their reads and writes while others go
// on, for so long that these end the changes of those, and looks at all records
// after every write.
func TestTableInTurns(t *testing.T) {
	t.Parallel()
	rounds := uint64(1000)
	if testing.Short() {
		rounds = 200
	}
	for seed := range rounds {
		var r recorder
		synctest.Test(t, func(t *testing.T) {
			store := watch()
			var s steppers
			s.start(4, store, func(n int, on idem.Store) {
				r.client(t, n, newTable(t, on, byEmail()), 3, rand.New(rand.NewPCG(seed, uint64(n))))
			})
			s.drive(rand.New(rand.NewPCG(seed, 99)))
			require.NoError(t, store.broken, "seed %d", seed)
		})
		requireLinearizable(t, r.ops)
	}
}

func TestTableModelRefuses(t *testing.T) {
	t.Parallel()
	insert := func(row int, email string) op { return op{method: "insert", row: row, email: email} }
	type did struct {
		op        op
		said      said
		call, end int64
	}
	tests := []struct {
		name    string
		history []did
		want    bool
	}{
		{"one after the other", []did{{insert(0, "a"), said{"ok", 0, 5, "a"}, 0, 1}, {insert(0, "b"), said{"existing", 0, 5, "a"}, 2, 3}}, true},
		{"two insert one row", []did{{insert(0, "a"), said{"ok", 0, 5, "a"}, 0, 9}, {insert(0, "b"), said{"ok", 0, 6, "b"}, 0, 9}}, false},
		{"two take one value", []did{{insert(0, "a"), said{"ok", 0, 5, "a"}, 0, 9}, {insert(1, "a"), said{"ok", 1, 6, "a"}, 0, 9}}, false},
		{"two update one version", []did{
			{insert(0, "a"), said{"ok", 0, 5, "a"}, 0, 1},
			{op{"update", 0, 5, "b"}, said{"ok", 0, 6, "b"}, 2, 9}, {op{"update", 0, 5, "c"}, said{"ok", 0, 7, "c"}, 2, 9},
		}, false},
		{"an old version is deleted", []did{
			{insert(0, "a"), said{"ok", 0, 5, "a"}, 0, 1}, {op{"update", 0, 5, "b"}, said{"ok", 0, 6, "b"}, 2, 3},
			{op{method: "delete", version: 5}, said{what: "ok"}, 4, 5},
		}, false},
		{"a duplicate of nothing", []did{{insert(0, "a"), said{"duplicate", 1, 5, "a"}, 0, 1}}, false},
		{"stale read", []did{{insert(0, "a"), said{"ok", 0, 5, "a"}, 0, 1}, {op{method: "getby", email: "a"}, said{what: "not found"}, 2, 3}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var history []porcupine.Operation
			for n, d := range tt.history {
				history = append(history, porcupine.Operation{ClientId: n, Input: d.op, Call: d.call, Output: d.said, Return: d.end})
			}
			require.Equal(t, tt.want, porcupine.CheckOperations(tableModel, history))
		})
	}
}
