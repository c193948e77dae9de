// Package needs is for tests that run programs which do not come with Go.
package needs

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Programs skips the test where one of the programs is missing, so that the tests
// run on a machine that has only Go. Where IDEM_NEEDS_ALL is set, as .ci/run does
// after it has installed them, the test fails instead.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	var missing []string
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return
	}
	say := t.Skipf
	if os.Getenv("IDEM_NEEDS_ALL") != "" {
		say = t.Fatalf
	}
	say("this test needs %s: apt-get install %s", strings.Join(missing, " and "), strings.Join(missing, " "))
}
