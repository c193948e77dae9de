package lock_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/lock"
)

// lockState is the model of one lock: the fence it is held with, 0 if it is free,
// and the highest one so far.
type lockState struct{ held, highest uint64 }

// lockOp is a TryLock, or an Unlock of the lock that was taken with the fence.
type lockOp struct{ unlock uint64 }

// step says whether a result, the fence or 0 for a refusal, is right in a state.
func (s lockState) step(op lockOp, fence uint64) (bool, lockState) {
	switch {
	case op.unlock != 0:
		return s.held == op.unlock, lockState{highest: s.highest}
	case fence == 0:
		return s.held != 0, s
	default:
		return s.held == 0 && fence > s.highest, lockState{held: fence, highest: fence}
	}
}

var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, op, fence any) (bool, any) {
		return state.(lockState).step(op.(lockOp), fence.(uint64))
	},
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, store := range stores[:2] {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			s := store.open(t)
			history := recordLocks(t, []*lock.Locks{newLocks(t, s), newLocks(t, s)})
			require.True(t, porcupine.CheckOperations(lockModel, history))
		})
	}
}

// recordLocks lets clients take and give back one lock, over several guards.
func recordLocks(t *testing.T, locks []*lock.Locks) []porcupine.Operation {
	histories := make([][]porcupine.Operation, 8)
	began := time.Now()
	var wg sync.WaitGroup
	for client := range histories {
		record := func(op lockOp, do func() (uint64, error)) {
			call := time.Since(began).Nanoseconds()
			fence, err := do()
			if err != nil {
				t.Error(err)
			}
			histories[client] = append(histories[client], porcupine.Operation{
				ClientId: client, Input: op, Call: call, Output: fence, Return: time.Since(began).Nanoseconds(),
			})
		}
		wg.Go(func() {
			for range 30 {
				var h *lock.Held
				record(lockOp{}, func() (fence uint64, err error) {
					h, err = locks[client%len(locks)].TryLock(t.Context(), "one")
					if errors.Is(err, lock.ErrHeld) {
						return 0, nil
					}
					if err != nil {
						return 0, err
					}
					return h.Fence(), nil
				})
				if h != nil {
					record(lockOp{unlock: h.Fence()}, func() (uint64, error) { return 0, h.Unlock(t.Context()) })
				}
			}
		})
	}
	wg.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h...)
	}
	return all
}

func TestModelRejectsBadHistories(t *testing.T) {
	t.Parallel()
	type did struct {
		op        lockOp
		fence     uint64
		call, end int64
	}
	try := func(fence uint64, call, end int64) did { return did{lockOp{}, fence, call, end} }
	tests := []struct {
		name    string
		history []did
		want    bool
	}{
		{"one after the other", []did{try(1, 0, 1), try(0, 2, 3), {lockOp{1}, 0, 4, 5}, try(2, 6, 7)}, true},
		{"two holders", []did{try(1, 0, 9), try(2, 0, 9)}, false},
		{"refused although it is free", []did{try(0, 0, 1), try(1, 2, 3)}, false},
		{"a fence goes back", []did{try(2, 0, 1), {lockOp{2}, 0, 2, 3}, try(1, 4, 5)}, false},
		{"given back by another", []did{try(2, 0, 1), {lockOp{1}, 0, 2, 3}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var history []porcupine.Operation
			for i, d := range tt.history {
				history = append(history, porcupine.Operation{ClientId: i, Input: d.op, Call: d.call, Output: d.fence, Return: d.end})
			}
			require.Equal(t, tt.want, porcupine.CheckOperations(lockModel, history), fmt.Sprint(tt.history))
		})
	}
}
