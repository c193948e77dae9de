package fsm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/fsm"
)

// way is the model of an instance: the states it was in, the initial one first.
// An empty one was not started.
type way []string

// fire says what a call is, and which way follows.
func (w way) fire(def fsm.Definition, to string) (string, way) {
	if len(w) == 0 {
		return "not found", w
	}
	now := w[len(w)-1]
	switch {
	case now != to && slices.Contains(def.Transitions[now], to):
		return "applied", append(slices.Clone(w), to)
	case now == to, slices.Contains(w[1:], to):
		return "already", w
	}
	return "illegal from " + now, w
}

// answer is what a call of Fire said, in the words of the model.
func answer(res fsm.Result, err error) string {
	var illegal *fsm.IllegalError
	switch {
	case errors.As(err, &illegal):
		return "illegal from " + illegal.From
	case errors.Is(err, idem.ErrNotFound):
		return "not found"
	case err != nil:
		return err.Error()
	}
	return res.Outcome.String()
}

// drawDefinition makes a machine in which every state can be reached.
func drawDefinition(rt *rapid.T) fsm.Definition {
	def := fsm.Definition{Initial: "s0", Transitions: map[string][]string{"s0": nil}}
	count := rapid.IntRange(1, 6).Draw(rt, "states")
	for n := 1; n < count; n++ {
		from := fmt.Sprintf("s%d", rapid.IntRange(0, n-1).Draw(rt, "from"))
		to := fmt.Sprintf("s%d", n)
		def.Transitions[from] = append(def.Transitions[from], to)
		def.Transitions[to] = nil
	}
	for range rapid.IntRange(0, 6).Draw(rt, "more") {
		from := fmt.Sprintf("s%d", rapid.IntRange(0, count-1).Draw(rt, "from"))
		to := fmt.Sprintf("s%d", rapid.IntRange(0, count-1).Draw(rt, "to"))
		if from != to && !slices.Contains(def.Transitions[from], to) {
			def.Transitions[from] = append(def.Transitions[from], to)
		}
	}
	return def
}

// TestMachineFollowsModel does random things with random machines, longer than the
// history, and draws each.
func TestMachineFollowsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		def := drawDefinition(rt)
		m := newMachine(t, idem.NewMemoryStore(idem.MemoryConfig{}), def)
		requireShows(t, m.SVG(), def)
		states := rapid.SampledFrom(slices.Sorted(func(yield func(string) bool) {
			for state := range def.Transitions {
				if !yield(state) {
					return
				}
			}
		}))
		ways := make(map[string]way)
		for range rapid.IntRange(1, 150).Draw(rt, "calls") {
			id := rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "id")
			if rapid.IntRange(0, 9).Draw(rt, "call") == 0 {
				in := start(t, m, id)
				require.Equal(rt, len(ways[id]) > 0, in.Existing)
				if !in.Existing {
					ways[id] = way{def.Initial}
				}
				continue
			}
			to := states.Draw(rt, "to")
			want, after := ways[id].fire(def, to)
			require.Equal(rt, want, answer(m.Fire(t.Context(), id, to, []byte(to))))
			ways[id] = after
		}
		for id, w := range ways {
			if len(w) > 0 {
				requireWay(rt, m, id, w)
			}
		}
	})
}

// requireWay wants the end of the way as the history, and its end as the state.
func requireWay(rt *rapid.T, m *fsm.Machine, id string, w way) {
	in, err := m.Get(rt.Context(), id)
	require.NoError(rt, err)
	require.Equal(rt, w[len(w)-1], in.State)
	require.Equal(rt, len(w)-1, in.Dropped+len(in.History))
	require.LessOrEqual(rt, len(in.History), fsm.MaxHistory)
	for n, step := range in.History {
		require.Equal(rt, w[in.Dropped+n], step.From)
		require.Equal(rt, w[in.Dropped+n+1], step.To)
		require.Equal(rt, step.To, string(step.Payload))
	}
}

// fsmOp is a call: Fire, or Get if to is "".
type fsmOp struct{ id, to string }

// historyModel checks every instance by itself.
func historyModel(def fsm.Definition) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byID := make(map[string][]porcupine.Operation)
			for _, op := range history {
				id := op.Input.(fsmOp).id
				byID[id] = append(byID[id], op)
			}
			var parts [][]porcupine.Operation
			for _, part := range byID {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return way{def.Initial} },
		Step: func(state, input, output any) (bool, any) {
			w, op := state.(way), input.(fsmOp)
			if op.to == "" {
				return output == w[len(w)-1], w
			}
			want, after := w.fire(def, op.to)
			return output == want, after
		},
		Equal:             func(a, b any) bool { return slices.Equal(a.(way), b.(way)) },
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v → %v", input, output) },
	}
}

func TestTransitionsAreLinearizable(t *testing.T) {
	t.Parallel()
	def := orderStates()
	def.Transitions["CANCELED"] = []string{"PENDING"} // round and round
	states := []string{"", "PENDING", "PAID", "CANCELED", "SHIPPED"}
	onStores(t, func(t *testing.T, store idem.Store) {
		m := newMachine(t, store, def)
		ids := []string{"1", "2", "3"}
		for _, id := range ids {
			start(t, m, id)
		}
		began := time.Now()
		histories := make([][]porcupine.Operation, 6)
		var wg sync.WaitGroup
		for client := range histories {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(client), 1))
				for range 25 {
					op := fsmOp{ids[random.IntN(len(ids))], states[random.IntN(len(states))]}
					call := time.Since(began).Nanoseconds()
					var said string
					if op.to == "" {
						in, err := m.Get(t.Context(), op.id)
						said = in.State
						if err != nil {
							t.Error(err)
						}
					} else {
						said = answer(m.Fire(t.Context(), op.id, op.to, nil))
					}
					histories[client] = append(histories[client], porcupine.Operation{
						ClientId: client, Input: op, Call: call, Output: said, Return: time.Since(began).Nanoseconds(),
					})
				}
			})
		}
		wg.Wait()
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(historyModel(def), slices.Concat(histories...), time.Minute))
	})
}

func TestHistoryModelRefuses(t *testing.T) {
	t.Parallel()
	def := orderStates()
	paid := func(said string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: fsmOp{"1", "PAID"}, Output: said, Call: call, Return: end}
	}
	tests := []struct {
		name    string
		history []porcupine.Operation
		want    bool
	}{
		{"one wins", []porcupine.Operation{paid("applied", 0, 9), paid("already", 0, 9)}, true},
		{"two win", []porcupine.Operation{paid("applied", 0, 9), paid("applied", 0, 9)}, false},
		{"none wins", []porcupine.Operation{paid("already", 0, 9), paid("already", 0, 9)}, false},
		{"already before it was", []porcupine.Operation{paid("already", 0, 1), paid("applied", 2, 3)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, porcupine.CheckOperations(historyModel(def), tt.history))
		})
	}
}
