package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/runner"
)

// runFlags are the flags of run.
type runFlags struct {
	key, scope    string
	oncePer, tz   string
	retention     time.Duration
	lease         time.Duration
	timeout       time.Duration
	wait          time.Duration
	onFailure     string
	onInterrupted string
	inputs, envs  []string
	maxOutput     int64
	resultFile    string
}

const (
	retryFailure      = "retry"
	replayFailure     = "replay"
	failInterrupted   = "fail"
	rerunInterrupted  = "rerun"
	defaultMaxOutput  = 1 << 20
	defaultRetention  = 24 * time.Hour
	defaultRunLease   = time.Minute
	defaultRunScope   = "run"
	recordKindRun     = "run"
	commandChildName  = "command"
	longestTidying    = 50 * time.Millisecond
	expiredPerRun     = 100
	resultFilePattern = ".idemctl-result-*"
)

func newRunCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run --key ID [flags] -- COMMAND [ARG...]",
		Short:   "Run a command once per key",
		GroupID: groupRun,
		Args:    cobra.MinimumNArgs(1),
		Long: `Runs a command once per key. A repeat within --retention does not run it: it
prints the recorded output again and ends with the recorded exit code.

The key ID names the intent, for instance "report-2026-11"; --once-per adds the
current hour, day, week or month to it. The arguments of the command, the content
of each --input file and the value of each --env variable are part of the intent:
the same key with others is refused, naming what differs.

A command that fails (any exit code but 0) releases the key, so that a repeat runs
it again, unless --on-failure replay is given. A command that is killed by a
signal, that fails after a signal was passed on to it, or that hits --timeout has
an unknown outcome, as has one whose idemctl dies: the key is then interrupted and
later runs end with 76 until somebody settles it with idemctl resolve, unless they
say --on-interrupted rerun.

The store's file is not held while the command runs, so any number of commands can
run at once. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the command and
its children (with a terminal: to the command). The command gets pipes, not a
terminal, for its output, standard input as it is, and these variables:

  IDEM_KEY        the key, scope/id
  IDEM_ATTEMPT    1, or more after an interruption
  IDEM_FENCE      a number that is greater in every later attempt of the key: what
                  remembers the highest one can refuse an attempt that is outdated
  IDEM_CHILD_KEY  32 hexadecimal digits that are the same in every attempt of the
                  key: an idempotency key for a service that the command calls

The exit code is the command's own, run or replayed, or one of those below that
tell what kept it from running. As a command may use these numbers too,
--result-file says which it was.

` + runExitCodeHelp(),
		Example: `  idemctl run --key report-2026-11 -- ./report.sh 2026-11
  idemctl run --key backup --once-per day --tz Europe/Berlin -- ./backup.sh
  idemctl run --key import-42 --input data.csv --wait 10m -- ./import.sh data.csv`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), f, args) },
	}
	f.register(cmd)
	return cmd
}

func runExitCodeHelp() string {
	text := "Exit codes:\n"
	for _, c := range append([]exitCode{{exitUsage, "usage: nothing ran"}, {exitLocked, "the file is held by another process: nothing ran"}}, runExitCodes()...) {
		text += fmt.Sprintf("  %-4d %s\n", c.Code, c.Meaning)
	}
	return text + "  128+n  the command was killed by signal n: its outcome is unknown"
}

func (f *runFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false) // what follows the command's name is the command's
	flags.StringVar(&f.key, "key", "", "`ID` of the key (required)")
	flags.StringVar(&f.scope, "scope", defaultRunScope, "`SCOPE` of the key")
	flags.StringVar(&f.oncePer, "once-per", "", "add the current `PERIOD` to the key: hour, day, week or month")
	flags.StringVar(&f.tz, "tz", "", "time `ZONE` of --once-per (default $TZ, else the system's)")
	flags.StringArrayVar(&f.inputs, "input", nil, "a `FILE` whose content must be the same in repeats; may be repeated")
	flags.StringArrayVar(&f.envs, "env", nil, "`NAME` of a variable whose value must be the same in repeats; may be repeated")
	flags.Var(newDurationFlag(&f.retention, defaultRetention), "retention", "how long repeats are answered, from the end of the run")
	flags.Var(newDurationFlag(&f.timeout, 0), "timeout", "end the command after this time, by SIGTERM and 5s later SIGKILL")
	flags.Var(newDurationFlag(&f.wait, 0), "wait", "wait this long for a run in progress elsewhere, and answer from its result")
	flags.StringVar(&f.onFailure, "on-failure", retryFailure, "`WHAT` a repeat of a failed command does: retry or replay")
	flags.StringVar(&f.onInterrupted, "on-interrupted", failInterrupted, "`WHAT` to do about an interrupted run: fail, or rerun if running twice does no harm")
	flags.Var(newSizeFlag(&f.maxOutput, defaultMaxOutput), "max-output", "how much output to keep for repeats, at most 8MiB")
	flags.StringVar(&f.resultFile, "result-file", "", "write what happened to `FILE`, as JSON")
	flags.Var(newDurationFlag(&f.lease, defaultRunLease), "lease", "how long the run is trusted without a sign of life, where its process cannot be looked up")
	_ = cmd.MarkFlagRequired("key")
	for name, choices := range map[string][]string{
		"once-per": {string(perHour), string(perDay), string(perWeek), string(perMonth)}, "on-failure": {retryFailure, replayFailure},
		"on-interrupted": {failInterrupted, rerunInterrupted},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	}
}

// validate checks what the flags' own syntax does not.
func (f *runFlags) validate() error {
	switch {
	case f.onFailure != retryFailure && f.onFailure != replayFailure:
		return usage("invalid --on-failure %q: use retry or replay", f.onFailure)
	case f.onInterrupted != failInterrupted && f.onInterrupted != rerunInterrupted:
		return usage("invalid --on-interrupted %q: use fail or rerun", f.onInterrupted)
	case f.maxOutput > runner.MaxKeep:
		return usage("invalid --max-output: at most 8MiB can be kept")
	case f.tz != "" && f.oncePer == "":
		return usage("--tz says nothing without --once-per")
	}
	if err := f.policy().Validate(); err != nil {
		return usage("%w", err)
	}
	return nil
}

func (f *runFlags) policy() idem.Policy {
	p := idem.Policy{Retention: f.retention, Lease: f.lease}
	if f.onInterrupted == rerunInterrupted {
		p.OnInterrupted = idem.Rerun()
	}
	return p
}

// idemKey is the key of a run at the given time.
func (a *app) idemKey(f *runFlags, now time.Time) (idem.Key, error) {
	key := idem.Key{Scope: f.scope, ID: f.key}
	if f.oncePer != "" && f.key != "" {
		p, err := parsePeriod(f.oncePer)
		if err != nil {
			return key, err
		}
		z, err := a.zone(f.tz)
		if err != nil {
			return key, err
		}
		key.ID += "@" + p.key(now, z)
	}
	return key, key.Validate()
}

// run is the command: it checks the call, runs, and says what happened.
func (a *app) run(ctx context.Context, f runFlags, argv []string) error {
	if err := f.validate(); err != nil {
		return err
	}
	key, err := a.idemKey(&f, time.Now())
	if err != nil {
		return err
	}
	signals := runner.Catch(context.WithoutCancel(ctx))
	defer signals.Stop()
	if ctx.Err() != nil { // a signal that came before
		return context.Cause(ctx)
	}
	file, err := newResultFile(f.resultFile)
	if err != nil {
		return fail(exitRunFailure, "", "result file: %w", err)
	}
	defer file.discard()

	o := (&onceRun{app: a, flags: f, key: key, argv: argv, signals: signals}).do()
	o.Key = key.String()
	if err := file.write(o); err != nil {
		a.warn("the result file was not written: %s", printable(err.Error()))
		if o.ExitCode == exitOK {
			return silent(exitRunFailure)
		}
	}
	if o.ExitCode == exitOK {
		return nil
	}
	return silent(o.ExitCode)
}
