package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/inbox"
)

func openGuard(t testing.TB, path string, opts ...idem.Option) *idem.Guard {
	t.Helper()
	g, err := idem.Open(path, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func newInbox(t testing.TB, opts ...idem.Option) (*idem.Guard, *inbox.Inbox) {
	t.Helper()
	g := openGuard(t, filepath.Join(t.TempDir(), "inbox.db"), opts...)
	in, err := inbox.New(g, "queue")
	require.NoError(t, err)
	return g, in
}

// count is the effect: a number in the file.
func count(name string) func(context.Context, *idem.Tx) error {
	return func(_ context.Context, tx *idem.Tx) error {
		b := tx.Bucket("effects")
		before, err := b.Get([]byte(name))
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(string(before))
		return b.Put([]byte(name), fmt.Append(nil, n+1))
	}
}

func counted(t testing.TB, g *idem.Guard, name string) (n int) {
	t.Helper()
	require.NoError(t, g.Store().(*idem.BoltStore).View(context.Background(), func(tx *idem.Tx) error {
		enc, err := tx.Bucket("effects").Get([]byte(name))
		n, _ = strconv.Atoi(string(enc))
		return err
	}))
	return n
}

func TestHandleOnce(t *testing.T) {
	t.Parallel()
	g, in := newInbox(t)
	outcome, err := in.Handle(t.Context(), "m", count("m"))
	require.NoError(t, err)
	require.Equal(t, inbox.Handled, outcome)
	for range 3 {
		outcome, err = in.Handle(t.Context(), "m", count("m"))
		require.NoError(t, err)
		require.Equal(t, inbox.Duplicate, outcome)
	}
	require.Equal(t, 1, counted(t, g, "m"))
	rec, err := g.Store().Get(t.Context(), idem.Key{Scope: "inbox:queue", ID: "m"})
	require.NoError(t, err)
	require.Equal(t, "inbox", rec.Kind)
	require.WithinDuration(t, time.Now().Add(inbox.DefaultRetention), rec.ExpiresAt, time.Minute)

	other, err := inbox.New(g, "other-queue")
	require.NoError(t, err)
	outcome, err = other.Handle(t.Context(), "m", count("m"))
	require.NoError(t, err)
	require.Equal(t, inbox.Handled, outcome, "sources do not know each other's messages")
}

func TestOutcomeString(t *testing.T) {
	t.Parallel()
	require.Equal(t, "handled duplicate outcome(0)", fmt.Sprintf("%s %s %s", inbox.Handled, inbox.Duplicate, inbox.Outcome(0)))
}

// TestRedelivery after a failure runs the handler again; nothing of the failed one
// is kept.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	g, in := newInbox(t)
	failure := errors.New("no")
	for range 2 {
		outcome, err := in.Handle(t.Context(), "m", func(ctx context.Context, tx *idem.Tx) error {
			return errors.Join(count("m")(ctx, tx), failure)
		})
		require.ErrorIs(t, err, failure)
		require.Zero(t, outcome)
	}
	require.Panics(t, func() {
		_, _ = in.Handle(t.Context(), "m", func(ctx context.Context, tx *idem.Tx) error {
			_ = count("m")(ctx, tx)
			panic("no")
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := in.Handle(ctx, "m", func(ctx context.Context, tx *idem.Tx) error {
		cancel()
		return errors.Join(count("m")(ctx, tx), ctx.Err())
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, counted(t, g, "m"))
	outcome, err := in.Handle(t.Context(), "m", count("m"))
	require.NoError(t, err)
	require.Equal(t, inbox.Handled, outcome)
	require.Equal(t, 1, counted(t, g, "m"))
}

func TestPermanentFailure(t *testing.T) {
	t.Parallel()
	g, in := newInbox(t)
	failure := errors.New("no such account")
	_, err := in.Handle(t.Context(), "m", func(ctx context.Context, tx *idem.Tx) error {
		return errors.Join(count("m")(ctx, tx), idem.Permanent(failure))
	})
	require.ErrorIs(t, err, failure)
	for range 2 {
		_, err = in.Handle(t.Context(), "m", count("m"))
		var failed *idem.FailedError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "no such account", failed.Record.Error)
	}
	require.Zero(t, counted(t, g, "m"))
}

func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	_, in := newInbox(t)
	_, err := in.Handle(t.Context(), "m", func(context.Context, *idem.Tx) error { return idem.Unknown(errors.New("no answer")) })
	require.ErrorIs(t, err, idem.ErrInterrupted)
	_, err = in.Handle(t.Context(), "m", count("m"))
	require.ErrorIs(t, err, idem.ErrInterrupted)
}

// TestConcurrentDeliveries: one of a hundred has the effect.
func TestConcurrentDeliveries(t *testing.T) {
	t.Parallel()
	g, in := newInbox(t)
	const deliveries = 100
	outcomes := make(chan string, deliveries)
	var all sync.WaitGroup
	for range deliveries {
		all.Go(func() {
			outcome, err := in.Handle(t.Context(), "m", count("m"))
			var busy *idem.InProgressError
			switch {
			case errors.Is(err, inbox.ErrBusy) && errors.As(err, &busy) && busy.RetryAfter > 0:
				outcomes <- "busy"
			case err != nil:
				outcomes <- err.Error()
			default:
				outcomes <- outcome.String()
			}
		})
	}
	all.Wait()
	close(outcomes)
	got := make(map[string]int)
	for o := range outcomes {
		got[o]++
	}
	require.Equal(t, 1, got["handled"], got)
	require.Equal(t, deliveries, got["handled"]+got["duplicate"]+got["busy"], got)
	require.Equal(t, 1, counted(t, g, "m"))
}

// TestSlowHandler keeps nobody else from being handled, and its own message busy.
func TestSlowHandler(t *testing.T) {
	t.Parallel()
	g, in := newInbox(t)
	began, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := in.Handle(t.Context(), "slow", func(ctx context.Context, tx *idem.Tx) error {
			close(began)
			<-goOn
			return count("slow")(ctx, tx)
		})
		ended <- err
	}()
	<-began
	for i := range 20 {
		outcome, err := in.Handle(t.Context(), fmt.Sprint(i), count("others"))
		require.NoError(t, err)
		require.Equal(t, inbox.Handled, outcome)
	}
	_, err := in.Handle(t.Context(), "slow", count("slow"))
	require.ErrorIs(t, err, inbox.ErrBusy)
	require.ErrorIs(t, err, idem.ErrInProgress)
	close(goOn)
	require.NoError(t, <-ended)
	require.Equal(t, 1, counted(t, g, "slow"))
	require.Equal(t, 20, counted(t, g, "others"))
}

// TestRetention: within it a message is a duplicate, after it a new one.
func TestRetention(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store, err := idem.OpenBoltStore(t.Context(), filepath.Join(dir, "inbox.db"), idem.BoltConfig{})
		require.NoError(t, err)
		g, err := idem.New(store)
		require.NoError(t, err)
		in, err := inbox.New(g, "queue", inbox.WithRetention(48*time.Hour))
		require.NoError(t, err)
		for _, want := range []inbox.Outcome{inbox.Handled, inbox.Duplicate, inbox.Duplicate, inbox.Handled} {
			outcome, err := in.Handle(t.Context(), "m", count("m"))
			require.NoError(t, err)
			require.Equal(t, want, outcome)
			time.Sleep(20 * time.Hour) // of fake time
		}
		require.NoError(t, g.Close())
		require.NoError(t, store.Close())
	})
}

func TestContent(t *testing.T) {
	t.Parallel()
	_, in := newInbox(t)
	content := func(amount int) inbox.HandleOption { return inbox.WithContent(map[string]int{"amount": amount}) }
	_, err := in.Handle(t.Context(), "m", count("m"), content(1))
	require.NoError(t, err)
	outcome, err := in.Handle(t.Context(), "m", count("m"), content(1))
	require.NoError(t, err)
	require.Equal(t, inbox.Duplicate, outcome)
	_, err = in.Handle(t.Context(), "m", count("m"), content(2))
	var mismatch *idem.MismatchError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, []string{"amount"}, mismatch.Parts)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	g, _ := newInbox(t)
	memory, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}))
	require.NoError(t, err)
	tests := []struct {
		name   string
		guard  *idem.Guard
		source string
		opts   []inbox.Option
		is     error
	}{
		{"no transactions", memory, "queue", nil, idem.ErrNoTransactions},
		{"no source", g, "", nil, idem.ErrInvalidKey},
		{"bad source", g, "a/b", nil, idem.ErrInvalidKey},
		{"long source", g, strings.Repeat("x", 123), nil, idem.ErrInvalidKey},
		{"no retention", g, "queue", []inbox.Option{inbox.WithRetention(0)}, idem.ErrInvalidPolicy},
		{"shorter than retries", g, "queue", []inbox.Option{inbox.WithRetention(time.Hour)}, idem.ErrInvalidPolicy},
		{"without end", g, "queue", []inbox.Option{inbox.WithRetention(2 * idem.MaxRetention)}, idem.ErrInvalidPolicy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := inbox.New(tt.guard, tt.source, tt.opts...)
			require.ErrorIs(t, err, tt.is)
		})
	}
	_, err = inbox.New(nil, "queue")
	require.Error(t, err)
	_, err = inbox.New(g, strings.Repeat("x", 122))
	require.NoError(t, err)
}

func TestHandleRefusesIDs(t *testing.T) {
	t.Parallel()
	g, in := newInbox(t)
	for _, id := range []string{"", strings.Repeat("x", 256), "a\nb", "\xff"} {
		_, err := in.Handle(t.Context(), id, count("m"))
		require.ErrorIs(t, err, idem.ErrInvalidKey, "%q", id)
	}
	require.Zero(t, counted(t, g, "m"))
}

func TestID(t *testing.T) {
	t.Parallel()
	require.Empty(t, inbox.ID(""))
	require.Equal(t, "order-1 é", inbox.ID("order-1 é"))
	long := strings.Repeat("x", 256)
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", inbox.ID(long))
	require.NotEqual(t, inbox.ID(long), inbox.ID(inbox.ID(long)), "nobody can send the hash for the id")
	rapid.Check(t, func(t *rapid.T) {
		id := string(rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "id"))
		require.NoError(t, idem.Key{Scope: "s", ID: inbox.ID(id)}.Validate())
		require.Equal(t, inbox.ID(id), inbox.ID(id))
	})
}
