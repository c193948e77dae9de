package idemhttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// What the test binary reads when TestCrashedService runs it as the service.
const (
	crashDir = "IDEMHTTP_TEST_CRASH_DIR"
	crashAt  = "IDEMHTTP_TEST_CRASH_AT" // "before" or "after" the effect
)

// effect is a piece of work that shows whether it was done, and fails if it is
// done twice.
type effect string

func (e effect) do() error { return os.Mkdir(string(e), 0o700) }

func (e effect) done() (bool, error) {
	_, err := os.Stat(string(e))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func effectIn(dir string) effect { return effect(filepath.Join(dir, "effect")) }

// crashService serves until it is killed: its handler stops before or after the
// effect and says so.
func crashService(t *testing.T) {
	dir := os.Getenv(crashDir)
	guard, err := idem.Open(filepath.Join(dir, "http.db"))
	require.NoError(t, err)
	server := serve(t, guard, func(http.ResponseWriter, *http.Request) {
		if os.Getenv(crashAt) == "after" {
			if err := effectIn(dir).do(); err != nil {
				fmt.Println(err)
			}
		}
		fmt.Println("stopped")
		select {}
	})
	fmt.Println(server.URL)
	select {}
}

// crash sends a request to a service that dies at the given point of it.
func crash(t *testing.T, dir, at string) {
	t.Helper()
	service := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashedService$")
	service.Env = append(os.Environ(), crashDir+"="+dir, crashAt+"="+at)
	out, err := service.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, service.Start())
	said := bufio.NewScanner(out)
	require.True(t, said.Scan())
	lost := postAside(t, &httptest.Server{URL: said.Text()}, "k", "{}")
	require.True(t, said.Scan())
	require.Equal(t, "stopped", said.Text())
	require.NoError(t, service.Process.Kill())
	require.Error(t, service.Wait())
	_, answered := <-lost
	require.False(t, answered)
}

// TestCrashedService: what the next process makes of a request whose process
// died. It cannot tell the two crashes apart by itself; who can ask does.
func TestCrashedService(t *testing.T) {
	if os.Getenv(crashDir) != "" {
		crashService(t)
	}
	t.Parallel()
	tests := []struct {
		name, at string
		recovery func(effect) idem.Recovery
		said     idemhttp.Status
		body     string // "" for a problem
	}{
		{"before the effect, fail closed", "before", failClosed, idemhttp.StatusInterrupted, ""},
		{"before the effect, rerun", "before", rerunAll, idemhttp.StatusExecuted, "attempt 2"},
		{"before the effect, reconcile", "before", reconcileEffect, idemhttp.StatusExecuted, "attempt 2"},
		{"after the effect, fail closed", "after", failClosed, idemhttp.StatusInterrupted, ""},
		{"after the effect, reconcile", "after", reconcileEffect, idemhttp.StatusReplayed, "reconciled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			crash(t, dir, tt.at)
			policy := idem.API
			policy.OnInterrupted = tt.recovery(effectIn(dir))
			guard, err := idem.Open(filepath.Join(dir, "http.db"))
			require.NoError(t, err)
			defer guard.Close()
			server := serve(t, guard, func(w http.ResponseWriter, r *http.Request) {
				if err := effectIn(dir).do(); err != nil {
					panic(err)
				}
				attempt, _ := idem.AttemptFrom(r.Context())
				fmt.Fprintf(w, "attempt %d", attempt.Number())
			}, idemhttp.Policy(policy))
			a := post(t, server, "/", "k", "{}")
			require.Equal(t, tt.said, a.said(), a.body)
			if tt.body == "" {
				require.Equal(t, idemhttp.ProblemInterrupted, a.problem(t).Type)
				require.Equal(t, a.body, post(t, server, "/", "k", "{}").body)
				return
			}
			require.Equal(t, tt.body, a.body)
			again := post(t, server, "/", "k", "{}")
			require.Equal(t, tt.body, again.body)
			require.Equal(t, idemhttp.StatusReplayed, again.said())
		})
	}
}

func failClosed(effect) idem.Recovery { return idem.FailClosed() }

func rerunAll(effect) idem.Recovery { return idem.Rerun() }

func reconcileEffect(e effect) idem.Recovery {
	return idem.Reconcile(func(context.Context, idem.Record) (idem.Verdict, error) {
		done, err := e.done()
		if err != nil || !done {
			return idem.NotDone(), err
		}
		value, err := idemhttp.Response{Status: http.StatusOK, Body: []byte("reconciled")}.MarshalBinary()
		return idem.Done(value), err
	})
}
