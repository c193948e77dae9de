package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/runner"
)

// resolveCommand settles one key by what a person has found out.
type resolveCommand struct {
	*app
	completed, retry bool
	failed           string
	valueFile        string
	reason           string
	retention        time.Duration
}

// maxReason leaves room in a record's note for who settled it and when.
const maxReason = 900

// maxMessage is how much of an error a record keeps.
const maxMessage = 4 << 10

func newResolveCommand(a *app) *cobra.Command {
	c := &resolveCommand{app: a}
	cmd := &cobra.Command{
		Use:     "resolve KEY {--completed | --failed MESSAGE | --retry} --reason TEXT",
		GroupID: groupMaintain,
		Short:   "Settle an interrupted key",
		Long: `Settles a key whose last attempt was interrupted, so that nobody knows whether its
work was done. Find out first, outside of the store, and then say which it is:

  --completed        the work was done: repeats get the value of --value-file. For
                     idemctl run that is what the command would have printed, with
                     exit code 0; without the flag it is nothing. For Do it is the
                     result as JSON; without the flag repeats are told that the
                     work was done but its result was not kept.
  --failed MESSAGE   the work failed for good: repeats fail with the message, those
                     of idemctl run with exit code 1.
  --retry            nothing happened: the key is released and the next call runs.

Only an interrupted key can be settled: not one in progress, nor one that is
finished. The reason is kept in the record, except with --retry, which removes it.

Exit code 1 means that the key is not interrupted, 3 that there is no record.`,
		Example: `  idemctl resolve run/nightly-2026-11-30 --completed --reason 'the file is in the bucket'
  idemctl resolve charge/order-1042 --completed --value-file receipt.json --reason 'found at the provider'
  idemctl resolve charge/order-1043 --retry --reason 'the provider has no such charge'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeKeys,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&c.completed, "completed", false, "the work was done")
	flags.StringVar(&c.failed, "failed", "", "the work failed for good, with this `MESSAGE`")
	flags.BoolVar(&c.retry, "retry", false, "nothing happened, the next call may run")
	flags.StringVar(&c.valueFile, "value-file", "", "with --completed, the `FILE` that holds the value; - is standard input")
	flags.StringVar(&c.reason, "reason", "", "how you know, as `TEXT` (required)")
	flags.Var(newDurationFlag(&c.retention, defaultRetention), "retention", "how long repeats are answered, from now")
	cmd.MarkFlagsOneRequired("completed", "failed", "retry")
	cmd.MarkFlagsMutuallyExclusive("completed", "failed", "retry")
	_ = cmd.MarkFlagRequired("reason")
	return cmd
}

func (c *resolveCommand) run(cmd *cobra.Command, text string) error {
	key, err := idem.ParseKey(text)
	if err != nil {
		return err
	}
	if err := c.validate(cmd); err != nil {
		return err
	}
	var value []byte
	if c.valueFile != "" {
		if value, err = c.readValue(); err != nil {
			return fmt.Errorf("value file: %w", err)
		}
	}
	return c.settle(cmd.Context(), key, value)
}

func (c *resolveCommand) validate(cmd *cobra.Command) error {
	switch {
	case c.valueFile != "" && !c.completed:
		return usage("--value-file goes with --completed only")
	case cmd.Flags().Changed("failed") && strings.TrimSpace(c.failed) == "":
		return usage("--failed needs a message")
	case len(c.failed) > maxMessage:
		return usage("--failed is too long: at most %d bytes are kept", maxMessage)
	case strings.TrimSpace(c.reason) == "":
		return usage("--reason must say something")
	case len(c.reason) > maxReason:
		return usage("--reason is too long: at most %d bytes are kept", maxReason)
	case c.retention <= 0 || c.retention > idem.MaxRetention:
		return usage("--retention must be more than 0 and at most %s", idem.MaxRetention)
	}
	return nil
}

func (c *resolveCommand) readValue() ([]byte, error) {
	from := c.in
	if c.valueFile != "-" {
		f, err := os.Open(c.valueFile)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	value, err := io.ReadAll(io.LimitReader(from, idem.MaxValueBytes+1))
	if err == nil && len(value) > idem.MaxValueBytes {
		err = fmt.Errorf("it is too large: a value has at most %d bytes", idem.MaxValueBytes)
	}
	if value == nil {
		value = []byte{}
	}
	return value, err
}

// settle writes the verdict over the record as it was found.
func (c *resolveCommand) settle(ctx context.Context, key idem.Key, value []byte) (err error) {
	s, err := c.openWrite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	rec, err := s.Get(ctx, key)
	if errors.Is(err, idem.ErrNotFound) {
		return notFound(ctx, s, key)
	}
	if err != nil {
		return err
	}
	if err := refuseSettled(s, &rec); err != nil {
		return err
	}
	if c.retry {
		if err := s.Delete(ctx, key, rec.Version); err != nil {
			return settleError(key, err)
		}
		c.note("released %s: the next call runs", printable(key.String()))
		return nil
	}
	settled, err := c.settled(rec, value, s.Now())
	if err != nil {
		return err
	}
	if settled, err = s.Swap(ctx, rec.Version, settled); err != nil {
		return settleError(key, err)
	}
	c.note("settled %s: %s, answers repeats for %s", printable(key.String()), settled.State, c.retention)
	return nil
}

func settleError(key idem.Key, err error) error {
	if errors.Is(err, idem.ErrConflict) || errors.Is(err, idem.ErrNotFound) {
		return fail(exitFailure, "idemctl get "+shellQuote(key.String()), "%q was changed meanwhile and left alone", key.String())
	}
	return err
}

// refuseSettled returns an error unless the record is that of an interrupted
// attempt.
func refuseSettled(s *idem.BoltStore, rec *idem.Record) error {
	key := rec.Key.String()
	switch rec.State {
	case idem.Interrupted:
		return nil
	case idem.Processing:
		owner, _, _ := strings.Cut(rec.Owner, "#")
		if !s.Alive(owner) || !s.Now().Before(rec.LeaseUntil) {
			return nil
		}
		if pid := ownerPID(rec.Owner); pid != 0 {
			return fail(exitFailure, "", "%q is not interrupted: process %d is at work on it", key, pid)
		}
		return fail(exitFailure, "again when its lease is over", "%q is not interrupted: it is processing, trusted until %s",
			key, rec.LeaseUntil.Format(time.RFC3339))
	}
	return fail(exitFailure, "idemctl get "+shellQuote(key), "%q is not interrupted: it is %s", key, rec.State)
}

// settled is the record that answers repeats from now on.
func (c *resolveCommand) settled(rec idem.Record, value []byte, now time.Time) (idem.Record, error) {
	now = now.UTC().Truncate(time.Microsecond)
	began := rec.StartedAt
	rec.UpdatedAt, rec.LeaseUntil, rec.ExpiresAt = now, time.Time{}, now.Add(c.retention)
	rec.Value, rec.ValueOmitted, rec.Error = value, 0, ""
	rec.Note = fmt.Sprintf("resolved: %s (uid %d, at %s)", c.reason, os.Getuid(), now.Format(time.RFC3339))
	rec.State = idem.Completed
	if !c.completed {
		rec.State, rec.Error = idem.Failed, c.failed
	}
	switch {
	case rec.Kind == recordKindRun:
		run := runner.Result{StartedAt: began, Duration: now.Sub(began)}
		if c.completed && len(value) > 0 {
			run.Chunks = []runner.Chunk{{Stream: runner.Stdout, Data: value}}
		}
		if !c.completed {
			run.ExitCode = exitFailure
			run.Chunks = []runner.Chunk{{Stream: runner.Stderr, Data: []byte(c.failed + "\n")}}
		}
		var err error
		if rec.Value, err = json.Marshal(run); err != nil {
			return rec, err
		}
		if len(rec.Value) > idem.MaxValueBytes {
			return rec, fmt.Errorf("value file: it is too large: a run keeps at most %d bytes of output", runner.MaxKeep)
		}
	case c.completed && value == nil:
		rec.ValueOmitted = 1 // repeats are told that the result was not kept
	}
	return rec, nil
}

// settleHelp says what a person can do about a key of unknown outcome.
func (a *app) settleHelp(key idem.Key) {
	resolve := "idemctl resolve "
	if a.flags.db != "" {
		resolve = "idemctl --db " + shellQuote(a.flags.db) + " resolve "
	}
	resolve = printable(resolve + shellQuote(key.String()))
	fmt.Fprintf(a.err, `Find out whether it did its work, then settle the key:
  it did            %[1]s --completed --reason TEXT
  it failed         %[1]s --failed MESSAGE --reason TEXT
  nothing happened  %[1]s --retry --reason TEXT
`, resolve)
}
