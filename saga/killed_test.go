package saga_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/internal/torture"
	"github.com/idembolt/idem/saga"
)

// TestMain is also the process that is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv("IDEM_SAGA_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := travel(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("all done")
	os.Exit(0)
}

const trips = 6

// travel books all trips, those with an odd number only to find at the end that
// they are sold out.
func travel(dir string) error {
	policy := idem.Orders
	policy.OnInterrupted = idem.Rerun()
	g, err := idem.Open(filepath.Join(dir, "saga.db"), idem.WithPolicy(policy))
	if err != nil {
		return err
	}
	defer g.Close()
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	for n := range trips {
		w := newWorld(func(point string) error {
			if what, after := strings.CutPrefix(point, "after "); after {
				fmt.Println(n, what)
				_, err := fmt.Fprintln(log, n, what) // the effect: it survives the process
				return err
			}
			if point == "at the end" && n%2 == 1 {
				return idem.Permanent(errors.New("sold out"))
			}
			return nil
		})
		_, err := idem.Do(context.Background(), g, idem.Key{Scope: "trip", ID: fmt.Sprint(n)}, nil, saga.Func(w.trip))
		if err != nil && !strings.Contains(err.Error(), "sold out") {
			return err
		}
	}
	return nil
}

// TestSagaKilled kills the process at any point, as often as it comes up, until it
// comes through. Every trip is then booked completely, or undone completely.
func TestSagaKilled(t *testing.T) {
	t.Parallel()
	torture.Rounds(t, 6, func(t *testing.T, random *rand.Rand) {
		dir := t.TempDir()
		kills := 0
		for !run(t, dir, random) {
			kills++
			require.Less(t, kills, 1000)
		}
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		require.NoError(t, err)
		state := make(map[string]bool)
		for line := range strings.Lines(string(log)) {
			var n int
			var what, name string
			_, err := fmt.Sscan(line, &n, &what, &name)
			require.NoError(t, err)
			state[fmt.Sprint(n, name)] = what == "do"
		}
		for n := range trips {
			for _, name := range names {
				require.Equal(t, n%2 == 0, state[fmt.Sprint(n, name)], "trip %d after %d kills:\n%s", n, kills, log)
			}
		}
		t.Logf("%d kills", kills)
	})
}

// run reports whether the process came through.
func run(t *testing.T, dir string, random *rand.Rand) bool {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "IDEM_SAGA_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	through := false
	last := random.IntN(8)
	for lines := bufio.NewScanner(out); lines.Scan(); last-- {
		through = through || lines.Text() == "all done"
		if last == 0 {
			kill := time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
			defer kill.Stop()
		}
	}
	_ = cmd.Wait()
	return through
}
