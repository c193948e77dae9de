package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/runner"
)

// What scripts cannot bring about: every error has its outcome and exit code.
func TestRunJudge(t *testing.T) {
	t.Parallel()
	key := idem.Key{Scope: "run", ID: "a b"}
	disk := errors.New("the disk is gone")
	cut := &runner.CutShortError{Why: "was killed by SIGKILL"}
	code := func(n int) *int { return &n }
	tests := []struct {
		name string
		res  runner.Result
		err  error
		want runOutcome
		says string
	}{
		{"not recorded", runner.Result{}, &idem.NotRecordedError{Key: key, Store: disk},
			runOutcome{Outcome: outcomeError, ExitCode: 125, CommandExitCode: code(0)}, "THE COMMAND RAN (exit 0), BUT THAT WAS NOT RECORDED"},
		{"failed and not released", runner.Result{ExitCode: 3}, &idem.NotRecordedError{Key: key, Store: disk, Func: &commandError{3}},
			runOutcome{Outcome: outcomeError, ExitCode: 125, CommandExitCode: code(3)}, "resolve 'run/a b' --retry"},
		{"killed and not recorded", runner.Result{ExitCode: 137}, &idem.NotRecordedError{Key: key, Store: disk, Func: cut},
			runOutcome{Outcome: outcomeError, ExitCode: 125, CommandExitCode: code(137)}, "the disk is gone"},
		{"store", runner.Result{}, fmt.Errorf("claim: %w", idem.ErrFull), runOutcome{Outcome: outcomeError, ExitCode: 125}, "store is full"},
		{"value not kept", runner.Result{}, idem.ErrValueNotKept, runOutcome{Outcome: outcomeError, ExitCode: 125}, "not kept"},
		{"locked", runner.Result{}, fmt.Errorf("claim: %w", &idem.LockedError{Path: "x.db", PID: 7}),
			runOutcome{Outcome: outcomeLocked, ExitCode: 6}, "x.db is locked by pid 7"},
		{"too many parts", runner.Result{}, idem.ErrInvalidInput, runOutcome{Outcome: outcomeError, ExitCode: 2}, "invalid input"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			signals := runner.Catch(t.Context())
			defer signals.Stop()
			r := &onceRun{app: &app{err: &said}, key: key, signals: signals}
			got := r.judge(idem.Result[runner.Result]{Value: tt.res}, tt.err)
			require.NotEmpty(t, got.Error)
			require.Contains(t, said.String(), "idemctl: "+got.Error+"\n", "the result file says what was printed")
			got.Error = ""
			require.Equal(t, tt.want, got)
			require.Contains(t, said.String(), tt.says)
		})
	}
}

func TestPartName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä/", 100) + "data.csv"
	tests := []struct{ name, path, want string }{
		{"short", "data.csv", "input data.csv"},
		{"longest", strings.Repeat("a", 58), "input " + strings.Repeat("a", 58)},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, partName("input ", tt.path), tt.name)
	}
	cutName := partName("input ", long)
	require.LessOrEqual(t, len(cutName), maxPartName)
	require.Contains(t, cutName, "data.csv…#")
	require.NotEqual(t, cutName, partName("input ", "x/"+long))
}

func TestSizeFlag(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want int64 // -1 for an error
	}{
		{"0", 0}, {"4096", 4096}, {"64KiB", 64 << 10}, {"1MiB", 1 << 20}, {"2 GiB", 2 << 30},
		{"", -1}, {"-1", -1}, {"1.5MiB", -1}, {"MiB", -1}, {"1MB", -1}, {"99999999999999999999", -1},
	}
	for _, tt := range tests {
		var n int64
		err := newSizeFlag(&n, 7).Set(tt.text)
		if tt.want < 0 {
			require.Error(t, err, tt.text)
			require.Equal(t, int64(7), n)
			continue
		}
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.want, n)
	}
	n := int64(1 << 20)
	require.Equal(t, "1MiB", sizeFlag{&n}.String())
}
