package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/outbox"
)

// outboxCommand is what the commands of an outbox share.
type outboxCommand struct {
	*app
	bucket string
}

func newOutboxCommand(a *app) *cobra.Command {
	return newFamily(&cobra.Command{
		Use:   "outbox",
		Short: "List, retry and drop the events of an outbox",
		Long: `The events of an outbox, as package outbox keeps them: those that wait to be
published, and those that were parked because publishing them has failed too often.
The relay that publishes them belongs to the service.

While the service runs it holds the file, and these commands end with exit code 6.`,
		Example: `  idemctl outbox stats
  idemctl outbox ls --parked
  idemctl outbox ls --parked --limit 0 -o name | xargs -d '\n' idemctl outbox retry --`,
	}, newOutboxLsCommand(a), newOutboxStatsCommand(a), newOutboxRetryCommand(a), newOutboxDropCommand(a))
}

func (c *outboxCommand) addFlags(cmd *cobra.Command) {
	c.bucket = outbox.DefaultBucket
	cmd.Flags().Var(textFlag{"bucket", &c.bucket}, "bucket", "`NAME` of the outbox's bucket")
}

// of returns the outbox of a store.
func (c *outboxCommand) of(s *idem.BoltStore) (*outbox.Outbox, error) {
	o, err := outbox.New(s, outbox.WithBucket(c.bucket))
	if errors.Is(err, outbox.ErrInvalidConfig) {
		return nil, usage("--bucket: %w", err)
	}
	return o, err
}

// notAnEvent reports whether an error says that stored bytes are no event, and not
// that they could not be got.
func notAnEvent(err error) bool {
	var syntax *json.SyntaxError
	var content *json.UnmarshalTypeError
	var binary base64.CorruptInputError
	return errors.Is(err, outbox.ErrInvalidEvent) || errors.As(err, &syntax) || errors.As(err, &content) || errors.As(err, &binary)
}

// read runs fn on the outbox of the open file.
func (c *outboxCommand) read(ctx context.Context, fn func(s *idem.BoltStore, o *outbox.Outbox) error) (err error) {
	s, err := c.openRead(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	o, err := c.of(s)
	if err != nil {
		return err
	}
	return fn(s, o)
}

// write runs fn for each id on the outbox of the file, which it lets go of now and
// then.
func (c *outboxCommand) write(ctx context.Context, ids []string, fn func(o *outbox.Outbox, id string) error) error {
	for len(ids) > 0 {
		n, err := c.writeSome(ctx, ids, fn)
		if err != nil {
			return err
		}
		if ids = ids[n:]; len(ids) > 0 && !sleep(ctx, yieldTime) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// writeSome returns for how many ids it ran fn.
func (c *outboxCommand) writeSome(ctx context.Context, ids []string, fn func(o *outbox.Outbox, id string) error) (n int, err error) {
	s, err := c.openWrite(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	o, err := c.of(s)
	if err != nil {
		return 0, err
	}
	for began := time.Now(); n < len(ids) && (n == 0 || time.Since(began) < holdTime); n++ {
		if err := fn(o, ids[n]); err != nil {
			return n, err
		}
	}
	return n, nil
}

func newOutboxStatsCommand(a *app) *cobra.Command {
	c := &outboxCommand{app: a}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count what waits and what has become of events",
		Long: `Counts the events that wait and those that are parked, and says since when the first
of them waits. Published and failed attempts are counted since the outbox was first
used.`,
		Example: "  idemctl outbox stats\n  idemctl outbox stats --bucket mails -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.stats(cmd.Context()) },
	}
	c.addFlags(cmd)
	return cmd
}

// outboxStatsJSON is the state of an outbox in JSON.
type outboxStatsJSON struct {
	Bucket          string  `json:"bucket"`
	Waiting         uint64  `json:"waiting"`
	OldestCreatedAt *string `json:"oldest_created_at"`
	LagMS           *int64  `json:"lag_ms"`
	Parked          uint64  `json:"parked"`
	Published       uint64  `json:"published"`
	FailedAttempts  uint64  `json:"failed_attempts"`
}

func (c *outboxCommand) stats(ctx context.Context) error {
	l, err := c.look("outbox stats")
	if err != nil {
		return err
	}
	var stats outbox.Stats
	var now time.Time
	err = c.read(ctx, func(s *idem.BoltStore, o *outbox.Outbox) (err error) {
		now = s.Now()
		stats, err = o.Stats(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if l.isJSON() {
		j := outboxStatsJSON{
			Bucket: c.bucket, Waiting: stats.Depth, OldestCreatedAt: jsonTime(stats.Oldest), Parked: stats.Parked,
			Published: stats.Published, FailedAttempts: stats.Failed,
		}
		if !stats.Oldest.IsZero() {
			lag := stats.Lag.Milliseconds()
			j.LagMS = &lag
		}
		return l.writeJSON(c.out, j)
	}
	b := detailBlock{KeyValue: &render.KeyValue{}, look: l, now: now}
	count := func(label string, n uint64) { b.Add(label, render.CountCell(int64(n))) }
	b.Add("Outbox", render.Bold.Text(c.bucket))
	count("Waiting", stats.Depth)
	b.moment("Oldest", stats.Oldest)
	if !stats.Oldest.IsZero() {
		b.Add("Lag", render.AgeCell(stats.Lag))
	}
	count("Parked", stats.Parked)
	count("Published", stats.Published)
	count("Failed attempts", stats.Failed)
	return b.Render(c.out, l.term)
}
