package cli

import (
	"context"
	"strings"
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
	retentionSet  bool // by the user
}

const (
	retryFailure     = "retry"
	replayFailure    = "replay"
	failInterrupted  = "fail"
	rerunInterrupted = "rerun"
	defaultMaxOutput = 1 << 20
	defaultRetention = 24 * time.Hour
	defaultRunLease  = time.Minute
	defaultRunScope  = "run"
	recordKindRun    = "run"
	commandChildName = "command"
	longestTidying   = 50 * time.Millisecond
	expiredPerRun    = 100
	// afterPeriod is how much longer than the period of --once-per a record is
	// kept.
	afterPeriod = 24 * time.Hour
)

func newRunCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run --key ID [flags] -- COMMAND [ARG...]",
		Short:   "Run a command once per key",
		GroupID: groupRun,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("no command is given: it comes after --")
			}
			return nil
		},
		Long: runText + runExitCodeHelp(),
		Example: `  idemctl run --key report-2026-11 -- ./report.sh 2026-11
  idemctl run --key backup --once-per day --tz Europe/Berlin -- ./backup.sh
  idemctl run --key import-42 --input data.csv --wait 10m -- ./import.sh data.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.retentionSet = cmd.Flags().Changed("retention")
			return a.run(cmd.Context(), f, args)
		},
	}
	f.register(a, cmd)
	return cmd
}

func (f *runFlags) register(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false) // what follows the command's name is the command's
	flags.StringVar(&f.key, "key", "", "`ID` of the key (required)")
	flags.StringVar(&f.scope, "scope", defaultRunScope, "`SCOPE` of the key")
	flags.Var(textFlag{"once-per", &f.oncePer}, "once-per", "add the current `PERIOD` to the key: hour, day, week or month")
	flags.StringVar(&f.tz, "tz", "", "time `ZONE` of --once-per (default $TZ, else the system's)")
	flags.StringArrayVar(&f.inputs, "input", nil, "a `FILE` whose content must be the same in repeats; may be repeated")
	flags.StringArrayVar(&f.envs, "env", nil, "`NAME` of a variable whose value must be the same in repeats; may be repeated")
	flags.Var(newDurationFlag(&f.retention, defaultRetention), "retention", "how long repeats are answered, from the end of the run; with --once-per by default to the end of the period and 24h more")
	flags.Var(newDurationFlag(&f.timeout, 0), "timeout", "end the command after this time, by SIGTERM and 5s later SIGKILL")
	flags.Var(newDurationFlag(&f.wait, 0), "wait", "wait this long for a run in progress elsewhere, and answer from its result")
	flags.StringVar(&f.onFailure, "on-failure", retryFailure, "`WHAT` a repeat of a failed command does: retry or replay")
	flags.StringVar(&f.onInterrupted, "on-interrupted", failInterrupted, "`WHAT` to do about an interrupted run: fail, or rerun if running twice does no harm")
	flags.Var(newSizeFlag(&f.maxOutput, defaultMaxOutput), "max-output", "how much output to keep for repeats, at most 8MiB")
	flags.Var(textFlag{"result-file", &a.resultFile}, "result-file", "write what happened to `FILE`, as JSON; it is replaced")
	flags.Var(newDurationFlag(&f.lease, defaultRunLease), "lease", "how long the run is trusted without a sign of life, where its process cannot be looked up")
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
	case f.key == "":
		return usage("--key is required, and not empty")
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

// idemKey is the key of a run at the given time. With a period it sees to it that
// the key is remembered until that is over.
func (a *app) idemKey(f *runFlags, now time.Time) (idem.Key, error) {
	key := idem.Key{Scope: f.scope, ID: f.key}
	if f.oncePer != "" {
		p, err := parsePeriod(f.oncePer)
		if err != nil {
			return key, err
		}
		z, err := a.zone(f.tz)
		if err != nil {
			return key, err
		}
		key.ID += "@" + p.key(now, z)
		if err := f.cover(p, p.end(now, z).Sub(now)); err != nil {
			return key, err
		}
	}
	if strings.HasPrefix(f.key, f.scope+"/") {
		a.note("idemctl: the key is %s: --key takes the id alone", printable(key.String()))
	}
	return key, key.Validate()
}

// cover makes the retention reach to the end of the period, so that the key is
// not used twice in it.
func (f *runFlags) cover(p period, left time.Duration) error {
	switch {
	case !f.retentionSet:
		f.retention = left + afterPeriod
	case f.retention < left:
		return usage("--retention %s ends before the %s does, which has %s to go, so the command would run twice in it",
			f.retention, p, left.Round(time.Second))
	}
	return nil
}

// run is the command: it checks the call, runs, and says what happened.
func (a *app) run(ctx context.Context, f runFlags, argv []string) error {
	signals := runner.Catch(context.WithoutCancel(ctx))
	defer signals.Stop()
	if ctx.Err() != nil { // a signal that came before
		return context.Cause(ctx)
	}
	file, err := a.newResultFile(f.inputs) // first: it ends what an earlier call said
	if err != nil {
		return err
	}
	if _, err := a.look("run"); err != nil {
		return err
	}
	if err := f.validate(); err != nil {
		return err
	}
	key, err := a.idemKey(&f, time.Now())
	if err != nil {
		return err
	}
	if err := file.open(signals.Context()); err != nil {
		return a.notOpened(signals, err)
	}

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

// notOpened is the error for a result file that is a pipe or a device.
func (a *app) notOpened(signals *runner.Signals, err error) error {
	if caught := signals.Caught(); caught != nil {
		return fail(caught.ExitCode(), "", "%w", caught)
	}
	return fail(exitRunFailure, "", "result file: %w", err)
}
