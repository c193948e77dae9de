package idem_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayLink are the modules that programs get by using the library.
var mayLink = []string{
	"github.com/idembolt/idem", "go.etcd.io/bbolt", "github.com/hashicorp/golang-lru/v2", "golang.org/x/sys",
}

type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *struct{ Path string }
}

func goList(t *testing.T, goos string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return out
}

// TestLibraryLinksLittle looks at every package that is not a command, without
// its tests.
func TestLibraryLinksLittle(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"linux", "darwin", "windows"} {
		var library []string
		for path := range strings.FieldsSeq(string(goList(t, goos, "./..."))) {
			if rest := strings.TrimPrefix(path, mayLink[0]); !strings.HasPrefix(rest, "/cmd/") && !strings.HasPrefix(rest, "/examples/") {
				library = append(library, path)
			}
		}
		require.Contains(t, library, mayLink[0])

		packages := make(map[string]goPackage)
		dec := json.NewDecoder(bytes.NewReader(goList(t, goos, append([]string{"-deps", "-json=ImportPath,Standard,Imports,Module"}, library...)...)))
		for {
			var p goPackage
			err := dec.Decode(&p)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			packages[p.ImportPath] = p
		}
		for path, p := range packages {
			if !p.Standard && (p.Module == nil || !slices.Contains(mayLink, p.Module.Path)) {
				t.Errorf("%s: %s", goos, strings.Join(importChain(packages, library, path), " -> "))
			}
		}
	}
}

// importChain is a shortest way from one of the roots to target.
func importChain(packages map[string]goPackage, roots []string, target string) []string {
	from := make(map[string]string)
	queue := slices.Clone(roots)
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == target {
			chain := []string{at}
			for from[at] != "" {
				at = from[at]
				chain = append([]string{at}, chain...)
			}
			return chain
		}
		for _, next := range packages[at].Imports {
			if from[next] == "" && !slices.Contains(roots, next) {
				from[next] = at
				queue = append(queue, next)
			}
		}
	}
	return []string{target}
}
