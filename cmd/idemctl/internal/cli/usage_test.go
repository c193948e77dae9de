package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// TestPatternUsage calls the commands of tokens, outboxes and objects wrongly.
func TestPatternUsage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "idem.db")
	s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	value := strings.Repeat("A", 32)
	tests := []struct {
		name string
		args []string
		says string
	}{
		{"no scope", []string{"token", "consume", value}, "--scope is required: "},
		{"bad scope", []string{"token", "issue", "--scope", "a b"}, "Try: idemctl help keys"},
		{"bad subject", []string{"token", "issue", "--scope", "s", "--subject", "a\nb"}, "Try: idemctl help keys"},
		{"too long", []string{"token", "issue", "--scope", "s", "--ttl", "25h"}, "--ttl must be 1s to 24h"},
		{"no time at all", []string{"token", "issue", "--scope", "s", "--ttl", "0s"}, "--ttl must be 1s to 24h"},
		{"too much", []string{"token", "issue", "--scope", "s", "extra"}, "Try: idemctl token issue --help"},
		{"no token", []string{"token", "consume", "--scope", "s"}, "Try: idemctl token consume --help"},
		{"no token on standard input", []string{"token", "inspect", "-", "--scope", "s"}, "there is no token on standard input"},
		{"no JSON", []string{"token", "consume", value, "--scope", "s", "-o", "json"}, "-o json is not available here"},
		{"no such command", []string{"token", "isue"}, "unknown command \"token isue\"\nTry: idemctl token issue\n"},
		{"payload for people", []string{"outbox", "ls", "--payload"}, "--payload goes with -o json"},
		{"parked after a number", []string{"outbox", "ls", "--parked", "--after", "3"}, "--after goes with events that wait"},
		{"negative limit", []string{"outbox", "ls", "--limit", "-1"}, "not a whole number"},
		{"reserved bucket", []string{"outbox", "stats", "--bucket", "idem.records"}, "--bucket: "},
		{"empty bucket", []string{"outbox", "stats", "--bucket", ""}, "--bucket is empty"},
		{"nothing to retry", []string{"outbox", "retry"}, "Try: idemctl outbox retry --help"},
		{"nothing to drop", []string{"outbox", "drop"}, "Try: idemctl outbox drop --help"},
		{"no such list", []string{"outbox", "lss"}, "Try: idemctl outbox ls\n"},
		{"no object", []string{"fsm", "show"}, "Try: idemctl fsm show --help"},
		{"no key", []string{"fsm", "show", "orders"}, "Try: idemctl help keys"},
		{"no such view", []string{"fsm", "shwo"}, "Try: idemctl fsm show\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			code := Run(t.Context(), append(tt.args, "--db", path), strings.NewReader(""), &out, &errOut, func(string) string { return "" })
			require.Equal(t, exitUsage, code, errOut.String())
			require.Contains(t, errOut.String(), tt.says)
			require.Empty(t, out.String())
		})
	}
}
