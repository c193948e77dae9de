// Package cli is the idemctl command: one file per command, and the frame that
// they share.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/cmd/idemctl/internal/spell"
)

// app is what the commands share: the streams and the global flags.
type app struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
	flags  globalFlags

	// started is set once a command has begun to run: an error before that is
	// one of usage.
	started bool
	command string // the command that was called, with its parents

	// resultFile is run's --result-file. It is here because the result of an
	// earlier call must not outlive one that never came to run.
	resultFile string
}

type globalFlags struct {
	db          string
	lockTimeout time.Duration
	output      string
	time        string
	color       string
	header      bool
	full        bool
	quiet       bool
	noInput     bool
}

// The groups of commands in the help.
const (
	groupInspect  = "inspect"
	groupMaintain = "maintain"
	groupRun      = "run"
	groupPatterns = "patterns"
)

// Run executes idemctl with the arguments and returns its exit code. It prints
// everything there is to say, errors included.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer, getenv func(string) string) int {
	ctx, stop := withSignals(ctx)
	defer stop()
	a := &app{in: in, out: out, err: errOut, getenv: getenv}
	root := newRootCommand(a)
	root.SetArgs(tokenArgs(root, args))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	a.command = cmd.CommandPath()
	if err != nil && !a.started {
		a.forgetResult()
	}
	return a.report(ctx, err)
}

// withSignals returns a context that the first SIGINT or SIGTERM ends, with a
// *signalError as its cause. The second one kills as usual.
func withSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	// Being notified of SIGPIPE turns it into an error of the write. Ignoring it
	// would do so too, but the commands that run starts would inherit that.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-stops:
			signal.Stop(stops)
			cancel(&signalError{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
		signal.Stop(stops)
		signal.Stop(pipes)
	}
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "idemctl",
		Short: "Look inside idem stores and run commands once per key",
		Long: `idemctl lists, reads, counts, checks and mends the records of an idem store, runs
shell commands once per key, and makes services idempotent from the outside. It
also handles one-time tokens, the events of an outbox and the states of objects.`,
		Example: `  idemctl ls --state interrupted
  idemctl get charge/order-1042
  idemctl purge --expired
  idemctl run --key nightly-2026-11-30 -- ./nightly.sh
  idemctl proxy --to http://127.0.0.1:3000 --scope shop`,
		Args:          cobra.ArbitraryArgs,
		RunE:          unknownCommand,
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpCommand(newHelpCommand())
	a.addGlobalFlags(root)
	root.AddGroup(
		&cobra.Group{ID: groupInspect, Title: "Inspect:"},
		&cobra.Group{ID: groupMaintain, Title: "Maintain:"},
		&cobra.Group{ID: groupRun, Title: "Run:"},
		&cobra.Group{ID: groupPatterns, Title: "Patterns:"},
	)
	root.AddCommand(
		newLsCommand(a), newGetCommand(a), newStatsCommand(a), newReportCommand(a), newInfoCommand(a),
		newCheckCommand(a), newCheckChildCommand(a), newPurgeCommand(a), newResolveCommand(a),
		newRunCommand(a), newProxyCommand(a),
		newTokenCommand(a), newOutboxCommand(a), newFSMCommand(a),
		newVersionCommand(a),
	)
	root.AddCommand(newTopicCommands()...)
	root.InitDefaultHelpCmd()
	completeCompletion(root)
	a.markStart(root)
	return root
}

// markStart makes every command note that it has begun.
func (a *app) markStart(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.started = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		a.markStart(sub)
	}
}

func (a *app) addGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.Var(textFlag{"db", &a.flags.db}, "db", "the store's file `PATH` (default $IDEM_DB, else the user's own store)")
	flags.Var(newDurationFlag(&a.flags.lockTimeout, time.Second), "lock-timeout", "how long to wait for a file that another process holds; 0 tries once")
	flags.StringVarP(&a.flags.output, "output", "o", "", "output `FORMAT`: "+strings.Join(render.FormatNames(), ", "))
	flags.StringVar(&a.flags.time, "time", "", "show times as `STYLE`: relative, iso or unix (default relative on a terminal, else iso)")
	flags.StringVar(&a.flags.color, "color", "", "colour `WHEN`: auto, always or never (default $IDEM_COLOR, else auto)")
	flags.BoolVar(&a.flags.header, "header", false, "print table headings in a pipe too")
	flags.BoolVar(&a.flags.full, "full", false, "cut nothing to fit a terminal")
	flags.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print no notes, only results and errors")
	flags.BoolVar(&a.flags.noInput, "no-input", false, "never ask")
	flags.BoolP("help", "h", false, "show help")
	root.Flags().Bool("version", false, "show the version") // ours, as cobra's takes the letter v
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(render.FormatNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("time", cobra.FixedCompletions([]string{"relative", "iso", "unix"}, cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
}

// unknownCommand is the own action of a command that has others: without arguments
// it helps.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	try := cmd.CommandPath() + " --help"
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		try = cmd.CommandPath() + " " + cmp.Or(spell.Nearest(args[0], similar), similar[0])
	}
	return fail(exitUsage, try, "unknown command %q", strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "idemctl "))
}

// note prints a line for people on standard error unless --quiet is given.
func (a *app) note(format string, args ...any) {
	if !a.flags.quiet {
		fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// warn prints a line on standard error in spite of --quiet.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.err, "idemctl: "+format+"\n", args...)
}
