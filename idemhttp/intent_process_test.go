package idemhttp_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/idemhttp"
)

// What the test binary reads when it is run again as a command.
const (
	commandStore = "IDEMHTTP_TEST_STORE" // name of an intentStore
	commandPath  = "IDEMHTTP_TEST_PATH"
	commandURL   = "IDEMHTTP_TEST_URL" // where to send the request, "" for nowhere
)

// runCommand is the command: it begins an intent, sends its request, and ends it
// when that was answered. It prints the key.
func runCommand(t *testing.T) {
	for _, store := range intentStores() {
		if store.name != os.Getenv(commandStore) {
			continue
		}
		in := begin(t, newIntents(t, store.open(t, os.Getenv(commandPath)), "billing"), "invoice 1")
		fmt.Printf("key=%s\n", in.Key)
		url := os.Getenv(commandURL)
		if url == "" {
			return
		}
		client := &http.Client{Transport: idemhttp.NewTransport(nil)}
		req := newRequest(t, idemhttp.WithIntent(t.Context(), in), "POST", url, "amount=120")
		require.Equal(t, http.StatusOK, send(t, client, req))
		require.NoError(t, in.Done(t.Context()))
		return
	}
	t.Fatalf("no store %q", os.Getenv(commandStore))
}

// command runs the test of the name in another process.
func command(ctx context.Context, test, store, path, url string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), commandStore+"="+store, commandPath+"="+path, commandURL+"="+url)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func printedKey(t *testing.T, out string) string {
	t.Helper()
	_, rest, found := strings.Cut(out, "key=")
	require.True(t, found, out)
	key, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(key)
}

// TestIntentKilled kills a command with SIGKILL while the server works on its
// request, and runs it again.
func TestIntentKilled(t *testing.T) {
	if os.Getenv(commandStore) != "" {
		runCommand(t)
		return
	}
	t.Parallel()
	for _, store := range intentStores()[:2] {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan struct{})
			server := serveKeys(t, func(before int, _ http.ResponseWriter, r *http.Request) {
				if before == 0 {
					close(arrived)
					<-r.Context().Done() // its client was killed
				}
			})
			path := filepath.Join(t.TempDir(), "idem.db")
			cmd, out := command(t.Context(), "TestIntentKilled", store.name, path, server.URL)
			require.NoError(t, cmd.Start())
			exited := make(chan error, 1)
			go func() { exited <- cmd.Wait() }()
			select {
			case <-arrived:
			case err := <-exited:
				require.FailNow(t, "it ended before it was killed", "%v: %s", err, out)
			}
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, <-exited)
			require.Len(t, server.seen(), 1)

			for range 2 { // the first of them ends the intent
				cmd, out := command(t.Context(), "TestIntentKilled", store.name, path, server.URL)
				require.NoError(t, cmd.Run(), "%s", out)
			}
			require.Len(t, server.seen(), 3)
			require.Equal(t, server.key(t, 0), server.key(t, 1))
			require.NotEqual(t, server.key(t, 1), server.key(t, 2))
		})
	}
}

// TestIntentProcesses begins one intent in several processes at the same time.
func TestIntentProcesses(t *testing.T) {
	if os.Getenv(commandStore) != "" {
		runCommand(t)
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db") // the first of them creates it
	outputs := make([]string, 6)
	errs := make([]error, len(outputs))
	var wg sync.WaitGroup
	for i := range outputs {
		wg.Go(func() {
			cmd, out := command(t.Context(), "TestIntentProcesses", "transient", path, "")
			errs[i] = cmd.Run()
			outputs[i] = out.String()
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err, outputs[i])
		require.Equal(t, printedKey(t, outputs[0]), printedKey(t, outputs[i]))
	}
}
