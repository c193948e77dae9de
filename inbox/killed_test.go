package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/inbox"
)

// consumerEnv makes the test binary a consumer that dies.
const consumerEnv = "INBOX_TEST_CONSUMER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(consumerEnv); dir != "" {
		fmt.Println(runKilledConsumer(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const killedMessages = 300

func message(i int) string { return fmt.Sprint("m", i) }

// die is SIGKILL: nothing of the process gets to run any more.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	fmt.Println("cannot die:", err)
}

// runKilledConsumer handles all messages from the first on, several at a time, and
// dies at some moment: in a handler, or around a commit.
func runKilledConsumer(dir string) error {
	g, err := idem.Open(filepath.Join(dir, "inbox.db"))
	if err != nil {
		return err
	}
	in, err := inbox.New(g, "queue")
	if err != nil {
		return err
	}
	time.AfterFunc(rand.N(150*time.Millisecond), die)
	deliveries, failed := make(chan int), make(chan error)
	for range 8 {
		go func() {
			for i := range deliveries {
				_, err := in.Handle(context.Background(), message(i), count(message(i)))
				if err != nil && !errors.Is(err, inbox.ErrBusy) { // the first round may still be at it
					failed <- err
				}
			}
		}()
	}
	for {
		for i := range killedMessages {
			select {
			case deliveries <- i:
			case err := <-failed:
				return err
			}
		}
	}
}

// TestKilledConsumer: after each death every message has its mark and its effect or
// neither, and in the end each has its effect once.
func TestKilledConsumer(t *testing.T) {
	t.Parallel()
	lives := 12
	if testing.Short() {
		lives = 5
	}
	dir := t.TempDir()
	for range lives {
		consumer := exec.CommandContext(t.Context(), os.Args[0])
		consumer.Env = append(os.Environ(), consumerEnv+"="+dir)
		out, err := consumer.CombinedOutput()
		require.Error(t, err)
		require.Empty(t, string(out), "it must die, not end")

		g, err := idem.Open(filepath.Join(dir, "inbox.db"))
		require.NoError(t, err)
		marks := make(map[string]bool)
		for rec, err := range g.Store().Scan(t.Context(), idem.Query{}) {
			require.NoError(t, err)
			require.Equal(t, idem.Completed, rec.State)
			marks[rec.Key.ID] = true
		}
		for i := range killedMessages {
			effects := 0
			if marks[message(i)] {
				effects = 1
			}
			require.Equal(t, effects, counted(t, g, message(i)), message(i))
		}
		require.NoError(t, g.Close())
	}
	g := openGuard(t, filepath.Join(dir, "inbox.db"))
	in, err := inbox.New(g, "queue")
	require.NoError(t, err)
	for i := range killedMessages {
		_, err := in.Handle(t.Context(), message(i), count(message(i)))
		require.NoError(t, err)
		require.Equal(t, 1, counted(t, g, message(i)))
	}
}
