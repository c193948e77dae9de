package lock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/lock"
)

// What the test binary reads when it is run again as another process.
const (
	roleEnv = "LOCK_TEST_ROLE" // "count", or the name of a store to hold a lock in
	dirEnv  = "LOCK_TEST_DIR"

	rounds = 15
)

func TestMain(m *testing.M) {
	role, dir := os.Getenv(roleEnv), os.Getenv(dirEnv)
	switch role {
	case "":
		os.Exit(m.Run())
	case "count":
		fmt.Println(count(context.Background(), dir))
	default:
		fmt.Println(holdFor(context.Background(), role, dir))
	}
}

func process(t *testing.T, role, dir string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, dirEnv+"="+dir)
	return cmd
}

func openLocks(ctx context.Context, store, dir string) (*lock.Locks, error) {
	path, c := filepath.Join(dir, "idem.db"), idem.BoltConfig{LockTimeout: time.Minute}
	var s idem.Store
	var err error
	if store == "bolt" {
		s, err = idem.OpenBoltStore(ctx, path, c)
	} else {
		s, err = idem.OpenTransient(ctx, path, c)
	}
	if err != nil {
		return nil, err
	}
	guard, err := idem.New(s)
	if err != nil {
		return nil, err
	}
	return lock.New(guard, "jobs", lock.WithTTL(time.Hour))
}

// holdFor takes the lock, says so, and holds it until it is killed.
func holdFor(ctx context.Context, store, dir string) error {
	locks, err := openLocks(ctx, store, dir)
	if err != nil {
		return err
	}
	h, err := locks.Lock(ctx, "a")
	if err != nil {
		return err
	}
	fmt.Printf("fence=%d\n", h.Fence())
	<-h.Lost()
	return h.Err()
}

// count adds to the number in a file, which only the lock protects.
func count(ctx context.Context, dir string) error {
	locks, err := openLocks(ctx, "transient", dir)
	if err != nil {
		return err
	}
	for range rounds {
		h, err := locks.Lock(ctx, "a")
		if err != nil {
			return err
		}
		if err := increment(filepath.Join(dir, "count"), h.Fence()); err != nil {
			return err
		}
		if err := h.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

// increment refuses a fence that is not higher than the last one.
func increment(path string, fence uint64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var n int
	var last uint64
	if _, err := fmt.Sscan(string(data), &n, &last); err != nil {
		return err
	}
	if fence <= last {
		return fmt.Errorf("fence %d after %d", fence, last)
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%d %d", n+1, fence), 0o600)
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "count"), []byte("0 0"), 0o600))
	outputs := make([]string, 3)
	errs := make([]error, len(outputs))
	var wg sync.WaitGroup
	for i := range outputs {
		cmd := process(t, "count", dir)
		wg.Go(func() {
			out, err := cmd.CombinedOutput()
			outputs[i], errs[i] = string(out), err
		})
	}
	wg.Wait()
	for i := range outputs {
		require.NoError(t, errs[i])
		require.Equal(t, "<nil>", strings.TrimSpace(outputs[i]))
	}
	data, err := os.ReadFile(filepath.Join(dir, "count"))
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(len(outputs)*rounds), strings.Fields(string(data))[0])
}

// killHolder runs a process that takes the lock and kills it. It returns the fence
// that the process had.
func killHolder(t *testing.T, store, dir string, meanwhile func()) uint64 {
	t.Helper()
	cmd := process(t, store, dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := bufio.NewScanner(out)
	require.True(t, said.Scan())
	text, ok := strings.CutPrefix(said.Text(), "fence=")
	require.True(t, ok, said.Text())
	fence, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	meanwhile()
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	return fence
}

// TestKilledService: that the file can be opened proves that its last holder is
// gone, whatever its lease says.
func TestKilledService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fence := killHolder(t, "bolt", dir, func() {})
	l := newLocks(t, openBolt(t, filepath.Join(dir, "idem.db")))
	h := take(t, l, "a")
	require.Greater(t, h.Fence(), fence)
	require.NoError(t, h.Unlock(t.Context()))
}
