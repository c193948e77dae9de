package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/cmd/idemctl/internal/runner"
)

type getCommand struct {
	*app
	value     bool
	runOutput bool
	format    string
}

// valueFormats are what --format takes.
func valueFormats() []string { return []string{"auto", "hex", "base64", "redacted"} }

func newGetCommand(a *app) *cobra.Command {
	c := &getCommand{app: a}
	cmd := &cobra.Command{
		Use:     "get KEY",
		GroupID: groupInspect,
		Short:   "Show one record",
		Long: `Shows the record of a key, written scope/id, and what its kind makes of it: the
status of a response, the state and history of a state machine, whether a token was
used. The stored value is shown as its size and SHA-256 only, since it may be
private: --format shows it, --value prints nothing but it. --run-output prints what
the command of idemctl run printed, to the streams that it printed to.

Exit code 3 means that there is no record.`,
		Example: `  idemctl get charge/order-1042
  idemctl get charge/order-1042 -o json
  idemctl get charge/order-1042 --value > result.json
  idemctl get run/nightly-2026-11-30 --run-output`,
		Args:              cobra.ExactArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
		ValidArgsFunction: a.completeKeys,
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.value, "value", false, "print the stored value alone, byte for byte")
	flags.BoolVar(&c.runOutput, "run-output", false, "print the recorded output of idemctl run alone, to standard output and error")
	flags.StringVar(&c.format, "format", "", "show the value as `FORM`: auto, hex, base64 or redacted")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(valueFormats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *getCommand) run(ctx context.Context, text string) error {
	key, err := idem.ParseKey(text)
	if err != nil {
		return err
	}
	look, err := c.look("get")
	if err != nil {
		return err
	}
	if err := c.validate(look); err != nil {
		return err
	}
	e, now, err := c.read(ctx, key)
	if err != nil {
		return err
	}
	switch {
	case c.value:
		return c.printValue(&e)
	case c.runOutput:
		return c.printRunOutput(&e)
	}
	return c.print(&e, look, now)
}

func (c *getCommand) validate(l look) error {
	switch c.format {
	case "", "auto", "hex", "base64":
	case "redacted":
		if c.value {
			return usage("--value and --format redacted exclude each other")
		}
	default:
		return usage("--format: unknown form %q: use %s", c.format, strings.Join(valueFormats(), ", "))
	}
	if c.runOutput && (c.value || c.format != "" || l.format != render.FormatTable) {
		return usage("--run-output prints the output as it was: it excludes --value, --format and -o")
	}
	if !c.value && c.format != "" && l.format != render.FormatTable && l.format != render.FormatWide {
		return usage("--format shows the value in a table only: with -o %s print it with --value", l.format)
	}
	return nil
}

// read gets the record, or an error that names the keys most like it.
func (c *getCommand) read(ctx context.Context, key idem.Key) (e entry, now time.Time, err error) {
	s, err := c.openRead(ctx)
	if err != nil {
		return e, now, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	info, err := s.Info(ctx)
	if err != nil {
		return e, now, err
	}
	rec, err := s.Get(ctx, key)
	if errors.Is(err, idem.ErrNotFound) {
		return e, now, notFound(ctx, s, key)
	}
	if err != nil {
		return e, now, err
	}
	e = newJudge(s, info).entry(ctx, rec, nil)
	e.detail = describe(&e, info.Now)
	return e, info.Now, nil
}

// notFound is the error for a key without a record.
func notFound(ctx context.Context, s idem.Store, key idem.Key) error {
	message := fmt.Sprintf("no record for %q", key.String())
	if near := nearestKeys(ctx, s, key.String(), 3); len(near) > 0 {
		message += "; nearest: " + strings.Join(quoteAll(near), ", ")
	}
	return fail(exitNotFound, "", "%s", message)
}

func (c *getCommand) refuseNoValue(e *entry) error {
	switch {
	case e.ValueOmitted > 0:
		return fail(exitFailure, "", "the value of %q was not kept: it had %d bytes", e.Key.String(), e.ValueOmitted)
	case e.Value == nil && e.Record.State != idem.Completed:
		return fail(exitFailure, c.keyHint("get", e.Key, ""), "%q has no value: it is %s", e.Key.String(), e.State)
	}
	return nil
}

// printValue writes the value alone.
func (c *getCommand) printValue(e *entry) error {
	if err := c.refuseNoValue(e); err != nil {
		return err
	}
	out := e.Value
	switch c.format {
	case "hex":
		out = []byte(hex.EncodeToString(e.Value) + "\n")
	case "base64":
		out = []byte(base64.StdEncoding.EncodeToString(e.Value) + "\n")
	default:
		if render.IsTTY(c.out) && isBinary(e.Value) {
			c.warn("the value is binary, see it with --format hex")
		}
	}
	_, err := io.Copy(c.out, bytes.NewReader(out))
	return err
}

// printRunOutput writes what a run has printed.
func (c *getCommand) printRunOutput(e *entry) error {
	if e.Kind != recordKindRun {
		return fail(exitFailure, c.keyHint("get", e.Key, "--value"), "%q is not of idemctl run but of %q", e.Key.String(), e.Kind)
	}
	if err := c.refuseNoValue(e); err != nil {
		return err
	}
	run, err := idem.DecodeValue[runner.Result](e.Record)
	if err != nil {
		return err
	}
	if run.NotKept > 0 {
		c.note("idemctl: the last %s of the output were not kept", render.Bytes(run.NotKept))
	}
	return runner.Replay(run, c.out, c.err)
}

// isBinary reports whether printing the value could disturb a terminal.
func isBinary(value []byte) bool {
	control := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }
	return !utf8.Valid(value) || bytes.IndexFunc(value, control) >= 0
}

func (c *getCommand) print(e *entry, l look, now time.Time) error {
	switch {
	case l.isJSON():
		if err := l.writeJSON(c.out, newRecordJSON(e)); err != nil {
			return err
		}
	case l.format == render.FormatCSV || l.format == render.FormatName:
		out, err := render.NewRecords(c.out, l.options(c.app), entryView(l, now))
		if err != nil {
			return err
		}
		if err := errors.Join(out.Write(*e), out.Close()); err != nil {
			return err
		}
	default:
		if err := c.block(e, l, now).Render(c.out, l.term); err != nil {
			return err
		}
	}
	if e.State == idem.Interrupted.String() && !kindOf(e.Kind).standing {
		c.note("Nobody knows whether the work of attempt %d was done.", e.Attempt)
		if !c.flags.quiet {
			c.settleHelp(e.Key)
		}
	}
	return nil
}
