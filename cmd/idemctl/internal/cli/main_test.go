package cli

import (
	"fmt"
	"os"
	"testing"
)

// TestMain keeps check, which starts its own program again, from starting the
// tests again, which would start check again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == checkChildName {
		fmt.Fprintln(os.Stderr, "idemctl: there is no checking in these tests")
		os.Exit(exitFailure)
	}
	os.Exit(m.Run())
}
