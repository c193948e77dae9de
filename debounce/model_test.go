package debounce_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/debounce"
)

// arrival is one call of Allow, some time after the one before.
type arrival struct {
	After time.Duration
	Name  string
}

func arrivals(rt *rapid.T) []arrival {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) arrival {
		return arrival{
			After: time.Duration(rapid.IntRange(0, 30).Draw(rt, "100 ms")) * 100 * time.Millisecond,
			Name:  rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name"),
		}
	}), 1, 60).Draw(rt, "arrivals")
}

// TestModel compares with the definition: let through unless somebody was within
// the interval. Expired records are removed now and then, which must not show.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		calls := arrivals(rt)
		var wrong error
		synctest.Test(t, func(t *testing.T) { wrong = follow(t, calls) })
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
}

func follow(t *testing.T, calls []arrival) error {
	const every = 2 * time.Second
	store := newMemory(t)
	d := newDebouncer(t, store, every)
	until := make(map[string]time.Time)
	for i, call := range calls {
		time.Sleep(call.After)
		if i%3 == 0 {
			if _, err := store.Expire(t.Context(), 10); err != nil {
				return err
			}
		}
		want := debounce.Decision{Allowed: true}
		if left := time.Until(until[call.Name]); left > 0 {
			want = debounce.Decision{RetryAfter: left}
		} else {
			until[call.Name] = time.Now().Add(every)
		}
		if got, err := d.Allow(t.Context(), call.Name); err != nil || got != want {
			return fmt.Errorf("call %d: Allow(%q) = %+v, %v, want %+v", i, call.Name, got, err, want)
		}
	}
	return nil
}

// onceModel is a name whose interval does not end: the first is let through.
var onceModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byName := make(map[string][]porcupine.Operation)
		for _, op := range history {
			byName[op.Input.(string)] = append(byName[op.Input.(string)], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byName {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return false },
	Step: func(through, _, allowed any) (bool, any) { return allowed.(bool) != through.(bool), true },
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, store := range stores[:2] {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			s := store.open(t, filepath.Join(t.TempDir(), "idem.db"))
			require.True(t, porcupine.CheckOperations(onceModel, recordAllows(t, s)))
		})
	}
	bad := []porcupine.Operation{
		{ClientId: 0, Input: "a", Call: 0, Output: true, Return: 9},
		{ClientId: 1, Input: "a", Call: 0, Output: true, Return: 9},
	}
	require.False(t, porcupine.CheckOperations(onceModel, bad))
	bad[0].Output, bad[1].Output, bad[1].Call, bad[1].Return = false, true, 10, 11
	require.False(t, porcupine.CheckOperations(onceModel, bad), "refused before anybody was let through")
}

func recordAllows(t *testing.T, store idem.Store) []porcupine.Operation {
	d := newDebouncer(t, store, 24*time.Hour)
	histories := make([][]porcupine.Operation, 10)
	began := time.Now()
	var wg sync.WaitGroup
	for client := range histories {
		wg.Go(func() {
			for i := range 20 {
				name := fmt.Sprint(i)
				call := time.Since(began).Nanoseconds()
				decision, err := d.Allow(t.Context(), name)
				if err != nil {
					t.Error(err)
				}
				histories[client] = append(histories[client], porcupine.Operation{
					ClientId: client, Input: name, Call: call, Output: decision.Allowed, Return: time.Since(began).Nanoseconds(),
				})
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
