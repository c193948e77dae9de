package fsm_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
)

const scope = "orders"

func orderStates() fsm.Definition {
	return fsm.Definition{Initial: "PENDING", Transitions: map[string][]string{
		"PENDING":   {"PAID", "CANCELED"},
		"PAID":      {"SHIPPED", "CANCELED"},
		"SHIPPED":   {"COMPLETED"},
		"COMPLETED": nil,
		"CANCELED":  nil,
	}}
}

func newMachine(t testing.TB, store idem.Store, def fsm.Definition, opts ...fsm.Option) *fsm.Machine {
	t.Helper()
	m, err := fsm.New(store, scope, def, opts...)
	require.NoError(t, err)
	return m
}

func openBolt(t testing.TB) *idem.BoltStore {
	t.Helper()
	s, err := idem.OpenBoltStore(t.Context(), filepath.Join(t.TempDir(), "fsm.db"), idem.BoltConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openTransient(t testing.TB) idem.Store {
	t.Helper()
	s, err := idem.OpenTransient(t.Context(), filepath.Join(t.TempDir(), "fsm.db"), idem.BoltConfig{LockTimeout: time.Minute})
	require.NoError(t, err)
	return s
}

// onStores runs a test on every kind of store.
func onStores(t *testing.T, test func(t *testing.T, store idem.Store)) {
	for name, open := range map[string]func(testing.TB) idem.Store{
		"memory":    func(testing.TB) idem.Store { return idem.NewMemoryStore(idem.MemoryConfig{}) },
		"bolt":      func(t testing.TB) idem.Store { return openBolt(t) },
		"transient": openTransient,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func start(t testing.TB, m *fsm.Machine, id string) fsm.Instance {
	t.Helper()
	in, err := m.Start(t.Context(), id)
	require.NoError(t, err)
	return in
}

func fire(t testing.TB, m *fsm.Machine, id, to string) fsm.Result {
	t.Helper()
	res, err := m.Fire(t.Context(), id, to, nil)
	require.NoError(t, err)
	return res
}

func TestMachine(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store idem.Store) {
		m := newMachine(t, store, orderStates())
		_, err := m.Fire(t.Context(), "1", "PAID", nil)
		require.ErrorIs(t, err, idem.ErrNotFound)
		require.ErrorContains(t, err, `fire "orders/1" to "PAID"`)
		_, err = m.Get(t.Context(), "1")
		require.ErrorIs(t, err, idem.ErrNotFound)

		in := start(t, m, "1")
		require.Equal(t, "PENDING", in.State)
		require.Equal(t, []string{"PAID", "CANCELED"}, in.Allowed)
		require.False(t, in.Existing)
		require.Empty(t, in.History)

		payload := []byte("receipt 7")
		res, err := m.Fire(t.Context(), "1", "PAID", payload)
		require.NoError(t, err)
		require.Equal(t, fsm.Applied, res.Outcome)
		require.Greater(t, res.Instance.Version, in.Version)
		payload[0] = 'X'
		got, err := m.Get(t.Context(), "1")
		require.NoError(t, err)
		require.Equal(t, res.Instance, got)
		require.Len(t, got.History, 1)
		require.Equal(t, fsm.Step{From: "PENDING", To: "PAID", At: got.UpdatedAt, Payload: []byte("receipt 7")}, got.History[0])

		again, err := m.Fire(t.Context(), "1", "PAID", []byte("other"))
		require.NoError(t, err)
		require.Equal(t, fsm.Result{Outcome: fsm.Already, Instance: got}, again, "nothing was written")
		existing := start(t, m, "1")
		require.True(t, existing.Existing)
		require.Equal(t, "PAID", existing.State)
	})
}

// TestRepeatsAndRefusals goes to the end of the way and asks for everything there.
func TestRepeatsAndRefusals(t *testing.T) {
	t.Parallel()
	m := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), orderStates())
	start(t, m, "1")
	for _, to := range []string{"PAID", "SHIPPED", "COMPLETED"} {
		require.Equal(t, fsm.Applied, fire(t, m, "1", to).Outcome)
	}
	for _, to := range []string{"PAID", "SHIPPED", "COMPLETED"} {
		res := fire(t, m, "1", to)
		require.Equal(t, fsm.Already, res.Outcome, "a repeat of a finished transition")
		require.Equal(t, "COMPLETED", res.Instance.State)
	}
	for _, to := range []string{"CANCELED", "PENDING"} {
		_, err := m.Fire(t.Context(), "1", to, nil)
		var illegal *fsm.IllegalError
		require.ErrorAs(t, err, &illegal)
		require.ErrorIs(t, err, fsm.ErrIllegal)
		require.Equal(t, "COMPLETED", illegal.From)
		require.Equal(t, to, illegal.To)
		require.Empty(t, illegal.Allowed)
		require.Len(t, illegal.Instance.History, 3)
		require.ErrorContains(t, err, "it is COMPLETED, which is final")
	}
	start(t, m, "2")
	_, err := m.Fire(t.Context(), "2", "SHIPPED", nil)
	require.ErrorContains(t, err, "it is PENDING, only PAID or CANCELED can follow")
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	m := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), orderStates())
	start(t, m, "1")
	tests := []struct {
		name, id, to string
		payload      []byte
		want         error
	}{
		{"no id", "", "PAID", nil, idem.ErrInvalidKey},
		{"id with a newline", "1\n", "PAID", nil, idem.ErrInvalidKey},
		{"long id", strings.Repeat("1", 256), "PAID", nil, idem.ErrInvalidKey},
		{"no state", "1", "", nil, fsm.ErrUnknownState},
		{"state of another case", "1", "paid", nil, fsm.ErrUnknownState},
		{"hostile state", "1", "\x1b[2J", nil, fsm.ErrUnknownState},
		{"large payload", "1", "PAID", make([]byte, fsm.MaxPayloadBytes+1), fsm.ErrPayloadTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := m.Fire(t.Context(), tt.id, tt.to, tt.payload)
			require.ErrorIs(t, err, tt.want)
			require.NotContains(t, err.Error(), "\x1b")
			require.NotContains(t, err.Error(), "\n")
		})
	}
	_, err := m.Start(t.Context(), "")
	require.ErrorIs(t, err, idem.ErrInvalidKey)
	_, err = m.Get(t.Context(), "")
	require.ErrorIs(t, err, idem.ErrInvalidKey)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Fire(ended, "1", "PAID", nil)
	require.ErrorIs(t, err, context.Canceled)
	res, err := m.Fire(t.Context(), "1", "PAID", make([]byte, fsm.MaxPayloadBytes))
	require.NoError(t, err)
	require.Len(t, res.Instance.History[0].Payload, fsm.MaxPayloadBytes)
}

// TestHistoryIsBounded: what the history has lost is still no news.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), fsm.Definition{
		Initial: "new", Transitions: map[string][]string{"new": {"made"}, "made": {"on"}, "on": {"off"}, "off": {"on"}},
	})
	start(t, m, "1")
	fire(t, m, "1", "made")
	for range fsm.MaxHistory {
		require.Equal(t, fsm.Applied, fire(t, m, "1", "on").Outcome)
		require.Equal(t, fsm.Applied, fire(t, m, "1", "off").Outcome)
	}
	res := fire(t, m, "1", "made")
	require.Equal(t, fsm.Already, res.Outcome)
	require.Len(t, res.Instance.History, fsm.MaxHistory)
	require.Equal(t, fsm.MaxHistory+1, res.Instance.Dropped)
	require.Equal(t, "off", res.Instance.History[fsm.MaxHistory-1].To)
}

// TestLargestInstanceFits in a record: every step of it is as large as can be.
func TestLargestInstanceFits(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	on, off := strings.Repeat("1", fsm.MaxStateBytes), strings.Repeat("0", fsm.MaxStateBytes)
	m := newMachine(t, store, fsm.Definition{Initial: on, Transitions: map[string][]string{on: {off}, off: {on}}},
		fsm.WithTraceFrom(func(context.Context) string { return strings.Repeat("<", 128) }))
	start(t, m, "1")
	payload := make([]byte, fsm.MaxPayloadBytes)
	_, err := m.Fire(t.Context(), "1", off, payload)
	require.NoError(t, err)
	rec, err := store.Get(t.Context(), idem.Key{Scope: scope, ID: "1"})
	require.NoError(t, err)
	var v map[string]any
	require.NoError(t, json.Unmarshal(rec.Value, &v))
	v["history"] = slices.Repeat(v["history"].([]any), fsm.MaxHistory)
	rec.Value, err = json.Marshal(v)
	require.NoError(t, err)
	_, err = store.Swap(t.Context(), rec.Version, rec)
	require.NoError(t, err)

	res, err := m.Fire(t.Context(), "1", on, payload)
	require.NoError(t, err)
	require.Len(t, res.Instance.History, fsm.MaxHistory)
	require.Equal(t, 1, res.Instance.Dropped)
}

// TestRaceForOneState: 50 callers make one transition.
func TestRaceForOneState(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store idem.Store) {
		m := newMachine(t, store, orderStates())
		start(t, m, "1")
		outcomes := make(map[fsm.Outcome]int)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				res, err := m.Fire(t.Context(), "1", "PAID", nil)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || res.Instance.State != "PAID" || len(res.Instance.History) != 1 {
					t.Errorf("%+v, %v", res, err)
				}
				outcomes[res.Outcome]++
			})
		}
		wg.Wait()
		require.Equal(t, map[fsm.Outcome]int{fsm.Applied: 1, fsm.Already: 49}, outcomes)
	})
}

// TestRaceForTwoStates: of two ways out of PENDING only one is taken.
func TestRaceForTwoStates(t *testing.T) {
	t.Parallel()
	def := orderStates()
	def.Transitions["PAID"] = []string{"SHIPPED"}
	onStores(t, func(t *testing.T, store idem.Store) {
		m := newMachine(t, store, def)
		for _, id := range []string{"1", "2", "3", "4"} {
			start(t, m, id)
			var mu sync.Mutex
			var wg sync.WaitGroup
			won := make(map[string]fsm.Outcome)
			var refused []*fsm.IllegalError
			for _, to := range []string{"PAID", "CANCELED"} {
				wg.Go(func() {
					res, err := m.Fire(t.Context(), id, to, nil)
					mu.Lock()
					defer mu.Unlock()
					var illegal *fsm.IllegalError
					if errors.As(err, &illegal) {
						refused = append(refused, illegal)
					} else if err == nil {
						won[to] = res.Outcome
					} else {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.Len(t, won, 1)
			require.Len(t, refused, 1)
			require.Equal(t, fsm.Applied, won[refused[0].From], "the loser is told the winner's state")
			require.Equal(t, refused[0].From, refused[0].Instance.State)
		}
	})
}

func TestRetentionIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), orderStates(), fsm.WithRetention(time.Hour))
		start(t, m, "1")
		time.Sleep(50 * time.Minute)
		start(t, m, "1") // does not renew
		fire(t, m, "1", "PAID")
		time.Sleep(50 * time.Minute)
		fire(t, m, "1", "PAID") // does not renew
		time.Sleep(10 * time.Minute)
		_, err := m.Fire(t.Context(), "1", "PAID", nil)
		require.ErrorIs(t, err, idem.ErrNotFound)
		require.False(t, start(t, m, "1").Existing)
	})
}

func TestTraceIDs(t *testing.T) {
	t.Parallel()
	type traceKey struct{}
	m := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), orderStates(), fsm.WithTraceFrom(func(ctx context.Context) string {
		id, _ := ctx.Value(traceKey{}).(string)
		return id
	}))
	long := strings.Repeat("é", 100)
	in, err := m.Start(context.WithValue(t.Context(), traceKey{}, "t-0"), "1")
	require.NoError(t, err)
	res, err := m.Fire(context.WithValue(t.Context(), traceKey{}, long), in.ID, "PAID", nil)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("é", 64), res.Instance.History[0].TraceID)
}
