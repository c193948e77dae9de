package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
)

// resolveCommand settles one key by what a person has found out.
type resolveCommand struct {
	*app
	completed, retry bool
	failed           string
	valueFile        string
	raw              bool
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
                     result as JSON, or with --raw the bytes of a function that
                     returns []byte; without the flag repeats are told that the
                     work was done but its result was not kept.
  --failed MESSAGE   the work failed for good: repeats fail with the message, those
                     of idemctl run with exit code 1.
  --retry            nothing happened: the key is released and the next call runs,
                     or goes on after the last finished step if there are any.

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
	flags.BoolVar(&c.raw, "raw", false, "with --value-file: store the bytes as they are, for a function that returns []byte")
	flags.StringVar(&c.reason, "reason", "", "how you know, as `TEXT` (required)")
	flags.Var(newDurationFlag(&c.retention, defaultRetention), "retention", "how long repeats are answered, from now; a record that is kept for longer stays so")
	return cmd
}

func (c *resolveCommand) run(cmd *cobra.Command, text string) error {
	key, err := idem.ParseKey(text)
	if err != nil {
		return err
	}
	if _, err := c.look("resolve"); err != nil {
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
	failed := cmd.Flags().Changed("failed")
	verdicts := 0
	for _, given := range []bool{c.completed, failed, c.retry} {
		if given {
			verdicts++
		}
	}
	switch {
	case verdicts == 0:
		return usage("say what you found out: --completed, --failed MESSAGE or --retry")
	case verdicts > 1:
		return usage("--completed, --failed and --retry exclude each other")
	case c.valueFile != "" && !c.completed:
		return usage("--value-file goes with --completed only")
	case c.raw && c.valueFile == "":
		return usage("--raw goes with --value-file only")
	case failed && strings.TrimSpace(c.failed) == "":
		return usage("--failed needs a message")
	case len(c.failed) > maxMessage:
		return usage("--failed is too long: at most %d bytes are kept", maxMessage)
	case strings.TrimSpace(c.reason) == "":
		return usage("--reason must say how you know")
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
	if err := cmp.Or(c.refuseSettled(s, &rec), c.refuseStanding(&rec), c.refuseValue(&rec, value)); err != nil {
		return err
	}
	if c.retry {
		return c.release(ctx, s, rec)
	}
	settled, err := c.settled(rec, value, s.Now())
	if err != nil {
		return err
	}
	if settled, err = s.Swap(ctx, rec.Version, settled); err != nil {
		return c.settleError(key, err)
	}
	c.note("settled %s: %s, answers repeats until %s", printable(key.String()), settled.State, settled.ExpiresAt.Format(time.RFC3339))
	return nil
}

func (c *resolveCommand) settleError(key idem.Key, err error) error {
	if errors.Is(err, idem.ErrConflict) || errors.Is(err, idem.ErrNotFound) {
		return fail(exitFailure, c.keyHint("get", key, ""), "%q was changed meanwhile and left alone", key.String())
	}
	return err
}
