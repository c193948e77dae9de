package idemtest_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemtest"
)

// brokenStore names the store that TestBrokenStore exercises in a subprocess.
const brokenStore = "IDEMTEST_BROKEN_STORE"

func TestExerciseAcceptsStoreWithoutOptionalInterfaces(t *testing.T) {
	t.Parallel()
	idemtest.Exercise(t, func(*testing.T) idem.Store { return newFlawed() }, idemtest.InBubble())
}

func TestExerciseAcceptsSelfExpiringStore(t *testing.T) {
	t.Parallel()
	idemtest.Exercise(t, func(*testing.T) idem.Store {
		f := newFlawed()
		f.query(func(q *idem.Query) { q.Expired = false })
		return f
	}, idemtest.InBubble(), idemtest.SelfExpiring())
}

func TestExerciseReopenAcceptsStoreThatKeepsEverything(t *testing.T) {
	t.Parallel()
	idemtest.ExerciseReopen(t, func(t *testing.T) (idem.Store, func() idem.Store) {
		s := idem.NewMemoryStore(idem.MemoryConfig{})
		return s, func() idem.Store { return s }
	}, idemtest.InBubble())
}

// TestExerciseFindsFlaws runs the check that must find a flaw on the store that
// has it. A failing check fails its *testing.T, so each runs in a process of its
// own.
func TestExerciseFindsFlaws(t *testing.T) {
	t.Parallel()
	for _, f := range brokenStores() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			found := strings.ReplaceAll(f.found, " ", "_")
			topic, check, _ := strings.Cut(found, "/")
			only := "^TestBrokenStore$/^" + topic + "$/^" + regexp.QuoteMeta(check) + "$"
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+only, "-test.timeout=1m")
			cmd.Env = append(os.Environ(), brokenStore+"="+f.name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the suite accepts the store: %s", out)
			require.Contains(t, string(out), "--- FAIL: TestBrokenStore/"+found+" ")
			require.NotContains(t, string(out), "panic:")
		})
	}
}

// TestBrokenStore is the subprocess. Without a store to exercise it checks that
// flaws can be told apart by name.
func TestBrokenStore(t *testing.T) {
	name := os.Getenv(brokenStore)
	seen := map[string]bool{}
	for _, f := range brokenStores() {
		require.False(t, seen[f.name], "two flaws are named %q", f.name)
		seen[f.name] = true
		if f.name != name {
			continue
		}
		if f.reopen != nil {
			idemtest.ExerciseReopen(t, f.reopen, idemtest.InBubble())
			return
		}
		idemtest.Exercise(t, f.open, idemtest.InBubble())
		return
	}
	require.Empty(t, name, "no flaw of this name")
}

func brokenStores() []flawOf {
	all := append(optionalFlaws(), reopenFlaws()...)
	for _, f := range flaws() {
		all = append(all, flawOf{name: f.name, found: f.found, open: func(*testing.T) idem.Store {
			store := newFlawed()
			f.plant(store)
			return store
		}})
	}
	return all
}
