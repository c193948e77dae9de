package table_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/table"
)

// What makes the test binary the process that TestKilled kills.
const (
	workerKind = "TABLE_TEST_STORE" // "bolt" or "transient"
	workerPath = "TABLE_TEST_PATH"
	workerFrom = "TABLE_TEST_FROM" // prefix of the ids it inserts
)

func TestMain(m *testing.M) {
	if os.Getenv(workerKind) != "" {
		fmt.Println(work(context.Background()))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func openFile(ctx context.Context, kind, path string) (idem.Store, func() error, error) {
	if kind == "bolt" {
		s, err := idem.OpenBoltStore(ctx, path, idem.BoltConfig{})
		return s, func() error { return s.Close() }, err
	}
	s, err := idem.OpenTransient(ctx, path, idem.BoltConfig{LockTimeout: time.Minute})
	return s, func() error { return nil }, err
}

// work inserts rows until it is killed, each with a value that the next one takes
// over, and says what it has done.
func work(ctx context.Context) error {
	store, _, err := openFile(ctx, os.Getenv(workerKind), os.Getenv(workerPath))
	if err != nil {
		return err
	}
	tab, err := table.New[account](store, scope, byEmail())
	if err != nil {
		return err
	}
	var before table.Row[account]
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s.%d", os.Getenv(workerFrom), n)
		row, err := tab.Insert(ctx, id, account{"new@x", n})
		if err != nil && !errors.Is(err, table.ErrDuplicate) { // a row of one that was killed has it
			return err
		}
		var taken *table.DuplicateError[account]
		if errors.As(err, &taken) {
			row = taken.Row
		}
		if before, err = tab.Update(ctx, row.ID, row.Version, account{id + "@x", n}); err != nil {
			return err
		}
		fmt.Println("done", before.ID, before.Value.Email)
	}
}

// TestKilled kills a process with SIGKILL while it writes, again and again on one
// file. What it has said that it did is there, no two rows have one value, and the
// next one goes on.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"bolt", "transient"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "table.db")
			said := make(map[string]string)
			for round := range 6 {
				killAfter(t, kind, path, round, said)
				store, done, err := openFile(t.Context(), kind, path)
				require.NoError(t, err)
				require.NoError(t, flawOf(store))
				rows := content(t, newTable(t, store, byEmail()))
				for id, email := range said {
					require.Equal(t, email, rows[id].Email, id)
				}
				require.NoError(t, done())
			}
		})
	}
}

// killAfter kills a process when it has said a few times that it has done something.
func killAfter(t *testing.T, kind, path string, round int, said map[string]string) {
	t.Helper()
	worker := exec.CommandContext(t.Context(), os.Args[0])
	worker.Env = append(os.Environ(), workerKind+"="+kind, workerPath+"="+path, fmt.Sprintf("%s=r%d", workerFrom, round))
	out, err := worker.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) != 3 || words[0] != "done" {
			t.Errorf("the process says %q", lines.Text())
			break
		}
		said[words[1]] = words[2]
		if n == 5+round {
			require.NoError(t, worker.Process.Kill())
		}
	}
	require.Error(t, worker.Wait())
}
