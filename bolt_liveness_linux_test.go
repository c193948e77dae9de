package idem

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// livenessChild claims the key "claimed" through the store of the given kind and
// then works on it until it is killed.
func livenessChild(t *testing.T) {
	path := os.Getenv("IDEM_FAULT_PATH")
	var store Store = openFaultTransient(t, path)
	if os.Getenv("IDEM_FAULT_STORE") == "bolt" {
		store = openFault(t, path, BoltConfig{})
	}
	g, err := New(store, WithPolicy(Policy{Retention: 48 * time.Hour, Lease: time.Hour}))
	require.NoError(t, err)
	_, err = Do(t.Context(), g, faultKey("claimed"), nil, func(ctx context.Context, _ *Attempt) (int, error) {
		fmt.Println("claimed")
		<-ctx.Done()
		return 0, nil
	})
	require.NoError(t, err)
}

func openFaultTransient(t *testing.T, path string) *TransientStore {
	t.Helper()
	s, err := OpenTransient(t.Context(), path, BoltConfig{LockTimeout: 30 * time.Second})
	require.NoError(t, err)
	return s
}

func startClaimant(t *testing.T, path, store string) *exec.Cmd {
	t.Helper()
	cmd := faultChild(t, "IDEM_FAULT_PATH="+path, "IDEM_FAULT_STORE="+store)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "claimed\n", line)
	return cmd
}

// TestKilledOwner kills a process in the middle of an attempt whose lease runs
// for another hour. Everybody else must see at once that its owner is gone, and
// before that, where two processes can share the file, that it is alive.
func TestKilledOwner(t *testing.T) {
	if isFaultChild(t) {
		livenessChild(t)
		return
	}
	t.Parallel()
	unreachable := func(context.Context, *Attempt) (int, error) {
		t.Error("it ran although the outcome of the first attempt is unknown")
		return 0, nil
	}
	for _, kind := range []string{"transient", "bolt"} {
		for _, reader := range []string{"transient", "bolt"} {
			t.Run(kind+" owner, "+reader+" reader", func(t *testing.T) {
				path := faultFile(t, 0, 0)
				cmd := startClaimant(t, path, kind)
				if kind == "transient" { // it does not hold the file
					g, err := New(openFaultTransient(t, path))
					require.NoError(t, err)
					_, err = Do(t.Context(), g, faultKey("claimed"), nil, unreachable)
					require.ErrorIs(t, err, ErrInProgress)
				}
				require.NoError(t, cmd.Process.Kill())
				require.Error(t, cmd.Wait())

				var store Store
				if reader == "bolt" {
					store = openFault(t, path, BoltConfig{LockTimeout: -1})
				} else {
					store = openFaultTransient(t, path)
				}
				rec, err := store.Get(t.Context(), faultKey("claimed"))
				require.NoError(t, err)
				require.Equal(t, Processing, rec.State)
				require.True(t, rec.LeaseUntil.After(time.Now().Add(30*time.Minute)), "its lease still runs")
				g, err := New(store)
				require.NoError(t, err)
				_, err = Do(t.Context(), g, faultKey("claimed"), nil, unreachable)
				require.ErrorIs(t, err, ErrInterrupted)
				again, err := Do(t.Context(), g, faultKey("claimed"), nil,
					func(_ context.Context, a *Attempt) (int, error) { return a.Number(), nil },
					WithPolicy(Policy{Retention: time.Hour, Lease: time.Minute, OnInterrupted: Rerun()}))
				require.NoError(t, err)
				require.Equal(t, 2, again.Value)
			})
		}
	}
}

// TestOwnerOfAnotherIncarnation: a claim of an earlier opening of the file, of
// this same process, is dead the moment the file is opened again; one of this
// opening is alive; one that cannot be judged is taken to be alive.
func TestOwnerOfAnotherIncarnation(t *testing.T) {
	t.Parallel()
	path := faultPath(t)
	first := openFault(t, path, BoltConfig{})
	owner := first.Owner()
	require.True(t, first.Alive(owner))
	_, err := first.Create(t.Context(), faultRecord("k", Processing, nil, owner))
	require.NoError(t, err)
	require.NoError(t, first.Close())

	second := openFault(t, path, BoltConfig{LockTimeout: -1})
	require.NotEqual(t, owner, second.Owner())
	require.False(t, second.Alive(owner))
	require.True(t, second.Alive(second.Owner()))
	require.True(t, second.Alive("somebody from elsewhere"))
	g, err := New(second)
	require.NoError(t, err)
	_, err = Do(t.Context(), g, faultKey("k"), nil, func(context.Context, *Attempt) (int, error) { return 0, nil })
	require.ErrorIs(t, err, ErrInterrupted)
	require.NoError(t, second.Close())

	transient := openFaultTransient(t, path)
	require.False(t, transient.Alive(owner))
	require.True(t, transient.Alive(transient.Owner()))
	require.True(t, transient.Alive("somebody from elsewhere"))
}

// TestManyTransientProcesses lets 20 processes work on one file at once, each on
// keys of its own and on keys that all of them want: each effect must happen
// once, and everybody must get the value of the one run.
func TestManyTransientProcesses(t *testing.T) {
	const own, shared = 2, 3
	if isFaultChild(t) {
		g, err := New(openFaultTransient(t, os.Getenv("IDEM_FAULT_PATH")))
		require.NoError(t, err)
		for i := range own + shared {
			id := fmt.Sprintf("shared-%d", i)
			if i >= shared {
				id = fmt.Sprintf("own-%d-%d", os.Getpid(), i)
			}
			res, err := Do(t.Context(), g, faultKey(id), id, func(context.Context, *Attempt) (string, error) {
				fmt.Println("effect", id)
				return "value of " + id, nil
			}, WithWait(UntilDeadline))
			require.NoError(t, err)
			require.Equal(t, "value of "+id, res.Value)
			fmt.Println("done", id)
		}
		return
	}
	t.Parallel()
	processes := 20
	path := faultPath(t) // that the file does not exist yet is part of the race
	var mu sync.Mutex
	effects, done := make(map[string]int), make(map[string]int)
	var children sync.WaitGroup
	for range processes {
		cmd := faultChild(t, "IDEM_FAULT_PATH="+path)
		children.Go(func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("child: %v\n%s", err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			tally(string(out), effects, done)
		})
	}
	children.Wait()
	require.Len(t, effects, processes*own+shared)
	for id, n := range effects {
		require.Equal(t, 1, n, "%s happened %d times", id, n)
	}
	for i := range shared {
		require.Equal(t, processes, done[fmt.Sprintf("shared-%d", i)])
	}
	s := openFault(t, path, BoltConfig{LockTimeout: -1})
	require.Len(t, contents(t, s), len(effects))
	require.NoError(t, s.Close())
	requireSound(t, path)
}

// tally counts the lines of a child.
func tally(out string, effects, done map[string]int) {
	for line := range strings.Lines(out) {
		switch word, id, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "effect":
			effects[id]++
		case "done":
			done[id]++
		}
	}
}
