package token_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

// serviceEnv makes the test binary the service that TestKilled kills.
const serviceEnv = "TOKEN_TEST_SERVICE"

func TestMain(m *testing.M) {
	if path := os.Getenv(serviceEnv); path != "" {
		fmt.Println(runService(context.Background(), path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// runService issues two tokens, consumes the first, and waits to be killed.
func runService(ctx context.Context, path string) error {
	store, err := idem.OpenBoltStore(ctx, path, idem.BoltConfig{})
	if err != nil {
		return err
	}
	tokens, err := token.New(store, "form")
	if err != nil {
		return err
	}
	used, err := tokens.Issue(ctx, "alice")
	if err != nil {
		return err
	}
	open, err := tokens.Issue(ctx, "alice")
	if err != nil {
		return err
	}
	if err := tokens.Consume(ctx, used.Value, "alice"); err != nil {
		return err
	}
	fmt.Println(used.Value, open.Value)
	select {}
}

// TestKilled: what the service had been told is so after it was killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	service := exec.CommandContext(t.Context(), os.Args[0])
	service.Env = append(os.Environ(), serviceEnv+"="+path)
	out, err := service.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, service.Start())
	said := bufio.NewScanner(out)
	require.True(t, said.Scan())
	used, open, ok := strings.Cut(said.Text(), " ")
	require.True(t, ok, said.Text())
	require.NoError(t, service.Process.Kill())
	require.Error(t, service.Wait())

	tokens := newTokens(t, openBolt(t, path))
	require.ErrorIs(t, tokens.Consume(t.Context(), used, "alice"), token.ErrUsed)
	require.NoError(t, tokens.Consume(t.Context(), open, "alice"))
}

// TestReopened: the same after the file was closed.
func TestReopened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	store, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
	require.NoError(t, err)
	tokens := newTokens(t, store)
	used, open := issue(t, tokens, "alice"), issue(t, tokens, "alice")
	require.NoError(t, tokens.Consume(t.Context(), used, "alice"))
	require.NoError(t, store.Close())

	store = openBolt(t, path)
	tokens = newTokens(t, store)
	require.ErrorIs(t, tokens.Consume(t.Context(), used, "alice"), token.ErrUsed)
	require.NoError(t, tokens.Consume(t.Context(), open, "alice"))
	report, err := store.Check(t.Context())
	require.NoError(t, err)
	require.Zero(t, report.Problems, "%+v", report.Findings)
}
