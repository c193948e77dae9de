package idem_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeProgram runs the program that the README shows, twice.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```go\npackage main")
	require.True(t, found, "README.md has no program")
	program, _, found := strings.Cut(rest, "```")
	require.True(t, found)

	dir := t.TempDir()
	program = strings.Replace("package main"+program, `"payments.db"`, "`"+filepath.Join(dir, "payments.db")+"`", 1)
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "main.exe")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	out, err := exec.Command("go", "build", "-o", binary, source).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, want := range []string{" false <nil>\n", " true <nil>\n"} {
		out, err := exec.Command(binary).CombinedOutput()
		require.NoError(t, err, string(out))
		require.True(t, strings.HasPrefix(string(out), "charged under ") && strings.HasSuffix(string(out), want), string(out))
	}
}
