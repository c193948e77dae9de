package idem_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// storeOp is one call of a client.
type storeOp struct {
	method  string // "create", "swap", "delete" or "get"
	key     idem.Key
	version uint64 // given to swap and delete
	value   string // given to create and swap
}

// storeResult is what the call returned: the record's version and value beside
// nil or a conflict, zero where there was none.
type storeResult struct {
	version uint64
	value   string
	err     error // nil, ErrConflict or ErrNotFound
}

// keyState is the model of one key: its record, and the highest version it ever
// had. A zero version means that there is no record.
type keyState struct {
	version uint64
	value   string
	highest uint64
}

func (s keyState) put(version uint64, value string) keyState {
	return keyState{version: version, value: value, highest: version}
}

// step says whether a result is right in a state, and which state follows.
func (s keyState) step(op storeOp, got storeResult) (bool, keyState) {
	found := got.version == s.version && got.value == s.value
	switch op.method {
	case "create":
		if s.version != 0 {
			return errors.Is(got.err, idem.ErrConflict) && found, s
		}
		return got.err == nil && got.version > s.highest && got.value == op.value, s.put(got.version, got.value)
	case "swap":
		if s.version == 0 || s.version != op.version {
			return errors.Is(got.err, idem.ErrConflict) && found, s
		}
		return got.err == nil && got.version > s.highest && got.value == op.value, s.put(got.version, got.value)
	case "delete":
		switch {
		case s.version == 0:
			return errors.Is(got.err, idem.ErrNotFound), s
		case s.version != op.version:
			return errors.Is(got.err, idem.ErrConflict), s
		}
		return got.err == nil, keyState{highest: s.highest}
	default:
		if s.version == 0 {
			return errors.Is(got.err, idem.ErrNotFound), s
		}
		return got.err == nil && found, s
	}
}

// storeModel checks each key by itself, as the contract promises no more.
var storeModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[idem.Key][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(storeOp).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return keyState{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(keyState).step(input.(storeOp), output.(storeResult))
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v → %+v", input, output)
	},
}

func TestStoresAreLinearizable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		open func(t *testing.T) idem.Store
	}{
		{"memory", newConformingMemory},
		{"bolt", func(t *testing.T) idem.Store { return openConforming(t, patientBolt) }},
		{"bolt with a cache of a few records", func(t *testing.T) idem.Store {
			c := patientBolt
			c.CacheBytes = 4 << 10
			return openConforming(t, c)
		}},
		{"journal", func(t *testing.T) idem.Store { return openConforming(t, idem.WithJournal(patientBolt)) }},
		{"journal without a cache", func(t *testing.T) idem.Store {
			c := patientBolt
			c.CacheBytes = -1
			return openConforming(t, idem.WithJournal(c))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			history := recordHistory(t, tt.open(t), 10, 150, 4)
			result, info := porcupine.CheckOperationsVerbose(storeModel, history, time.Minute)
			if result != porcupine.Ok {
				t.Fatalf("the history is not linearizable (%s), see %s", result, visualize(t, info))
			}
		})
	}
}

// visualize leaves a picture of a bad history behind and returns its path.
func visualize(t *testing.T, info porcupine.LinearizationInfo) string {
	t.Helper()
	f, err := os.CreateTemp("", "idem-history-*.html")
	require.NoError(t, err)
	require.NoError(t, porcupine.Visualize(storeModel, info, f))
	require.NoError(t, f.Close())
	return f.Name()
}

// recordHistory lets clients work on few keys at the same time and returns all that
// they did and saw.
func recordHistory(t *testing.T, store idem.Store, clients, ops, keys int) []porcupine.Operation {
	t.Helper()
	histories := make([][]porcupine.Operation, clients)
	began := time.Now()
	var working sync.WaitGroup
	for id := range clients {
		working.Go(func() {
			c := &storeClient{id: id, store: store, random: rand.New(rand.NewPCG(uint64(id), 1)), seen: map[idem.Key]uint64{}}
			for n := range ops {
				op := c.next(n, keys)
				call := time.Since(began).Nanoseconds()
				got := c.do(t.Context(), op)
				if got.err != nil && !errors.Is(got.err, idem.ErrConflict) && !errors.Is(got.err, idem.ErrNotFound) {
					t.Errorf("%+v: %v", op, got.err)
				}
				histories[id] = append(histories[id], porcupine.Operation{
					ClientId: id, Input: op, Call: call, Output: got, Return: time.Since(began).Nanoseconds(),
				})
			}
		})
	}
	working.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h...)
	}
	return all
}

// storeClient does random things and remembers the versions that it has seen.
type storeClient struct {
	id     int
	store  idem.Store
	random *rand.Rand
	seen   map[idem.Key]uint64
}

func (c *storeClient) next(n, keys int) storeOp {
	key := idem.Key{Scope: "linear", ID: strconv.Itoa(c.random.IntN(keys))}
	op := storeOp{key: key, version: c.seen[key], value: fmt.Sprintf("%d.%d", c.id, n)}
	switch c.random.IntN(10) {
	case 0, 1:
		op.method, op.version = "create", 0
	case 2, 3, 4:
		op.method = "swap"
	case 5:
		op.method, op.value = "delete", ""
	default:
		op.method, op.version, op.value = "get", 0, ""
	}
	return op
}

func (c *storeClient) do(ctx context.Context, op storeOp) storeResult {
	rec := idem.Record{Key: op.key, State: idem.Completed, Value: []byte(op.value), ExpiresAt: time.Now().UTC().Add(time.Hour)}
	if c.random.IntN(2) == 0 { // a state that is not cached
		rec.State, rec.LeaseUntil = idem.Processing, rec.ExpiresAt
	}
	var err error
	switch op.method {
	case "create":
		rec, err = c.store.Create(ctx, rec)
	case "swap":
		rec, err = c.store.Swap(ctx, op.version, rec)
	case "delete":
		return storeResult{err: c.store.Delete(ctx, op.key, op.version)}
	default:
		rec, err = c.store.Get(ctx, op.key)
	}
	c.seen[op.key] = rec.Version
	return storeResult{version: rec.Version, value: string(rec.Value), err: err}
}

func TestStoreModelRejectsBadHistories(t *testing.T) {
	t.Parallel()
	key := idem.Key{Scope: "linear", ID: "a"}
	create := storeOp{method: "create", key: key, value: "x"}
	get := storeOp{method: "get", key: key}
	swap := func(version uint64) storeOp { return storeOp{method: "swap", key: key, version: version, value: "y"} }
	remove := func(version uint64) storeOp { return storeOp{method: "delete", key: key, version: version} }
	x, y := storeResult{version: 1, value: "x"}, storeResult{version: 2, value: "y"}
	absent := storeResult{err: idem.ErrNotFound}
	type did struct {
		op        storeOp
		got       storeResult
		call, end int64
	}
	tests := []struct {
		name    string
		history []did
		want    bool
	}{
		{"one after the other", []did{{create, x, 0, 1}, {swap(1), y, 2, 3}, {get, y, 4, 5}}, true},
		{"reads around an overlapping write", []did{{create, x, 0, 9}, {get, absent, 1, 2}, {get, x, 3, 4}}, true},
		{"two creations win", []did{{create, x, 0, 9}, {create, storeResult{version: 2, value: "x"}, 0, 9}}, false},
		{"two swaps of a version win", []did{{create, x, 0, 1}, {swap(1), y, 2, 9}, {swap(1), storeResult{version: 3, value: "y"}, 2, 9}}, false},
		{"stale read", []did{{create, x, 0, 1}, {swap(1), y, 2, 3}, {get, x, 4, 5}}, false},
		{"lost write", []did{{create, x, 0, 1}, {get, absent, 2, 3}}, false},
		{"read of what was deleted", []did{{create, x, 0, 1}, {remove(1), storeResult{}, 2, 3}, {get, x, 4, 5}}, false},
		{"version goes back after a deletion", []did{{create, storeResult{version: 2, value: "x"}, 0, 1}, {remove(2), storeResult{}, 2, 3}, {create, x, 4, 5}}, false},
		{"reads go back in time", []did{{create, x, 0, 9}, {get, x, 1, 2}, {get, absent, 3, 4}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var history []porcupine.Operation
			for i, d := range tt.history {
				history = append(history, porcupine.Operation{ClientId: i, Input: d.op, Call: d.call, Output: d.got, Return: d.end})
			}
			require.Equal(t, tt.want, porcupine.CheckOperations(storeModel, history))
		})
	}
}
