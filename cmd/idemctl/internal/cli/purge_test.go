package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// newTestApp is an app on a new store with count completed records.
func newTestApp(t *testing.T, count int) (*app, *bytes.Buffer) {
	t.Helper()
	a := &app{in: strings.NewReader(""), out: &bytes.Buffer{}, getenv: func(string) string { return "" }, started: true}
	errOut := &bytes.Buffer{}
	a.err = errOut
	a.flags.db = filepath.Join(t.TempDir(), "idem.db")
	s, err := idem.OpenBoltStore(t.Context(), a.flags.db, idem.BoltConfig{Visitor: true})
	require.NoError(t, err)
	errs := make([]error, count)
	var writers sync.WaitGroup
	for i := range count {
		writers.Go(func() { _, errs[i] = s.Create(t.Context(), testRecord(s, fmt.Sprintf("%04d", i))) })
	}
	writers.Wait()
	require.NoError(t, errors.Join(append(errs, s.Close())...))
	return a, errOut
}

func testRecord(s *idem.BoltStore, id string) idem.Record {
	now := s.Now()
	return idem.Record{
		Key: idem.Key{Scope: "charge", ID: id}, State: idem.Completed, Kind: "func", Owner: "r:gone#1", Attempt: 1,
		CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
}

func newTestPurge(a *app) *purgeCommand {
	return &purgeCommand{app: a, filter: filter{prefix: "charge/"}, yes: true}
}

func countRecords(t *testing.T, a *app) int64 {
	t.Helper()
	r, err := a.newReader(t.Context())
	require.NoError(t, err)
	return r.info.Records
}

// fuse is a context that a signal ends once it has been asked often enough.
type fuse struct {
	context.Context
	cancel context.CancelCauseFunc
	left   atomic.Int64
}

func newFuse(ctx context.Context, asks int64) *fuse {
	inner, cancel := context.WithCancelCause(ctx)
	f := &fuse{Context: inner, cancel: cancel}
	f.left.Store(asks)
	return f
}

func (f *fuse) Err() error {
	if f.left.Add(-1) < 0 {
		f.cancel(&signalError{syscall.SIGINT})
	}
	return f.Context.Err()
}

// TestPurgeStops interrupts a purge in its second window: it says how far it has come,
// what is deleted stays so, and the rest is there for the next time.
func TestPurgeStops(t *testing.T) {
	t.Parallel()
	const count = purgeWindow + 200
	a, errOut := newTestApp(t, count)
	// A deletion asks twice: when it is handed out and when the store takes it.
	ctx := newFuse(t.Context(), 2*purgeWindow+100)
	err := newTestPurge(a).run(ctx, nil)
	require.Equal(t, exitInterrupt, a.report(ctx, err))
	require.Regexp(t, `^idemctl: stopped after 1,\d+ of 1,224; run it again to continue\n$`, errOut.String())
	left := countRecords(t, a)
	require.Positive(t, left)
	require.Contains(t, errOut.String(), render.Count(count-left))

	require.NoError(t, newTestPurge(a).run(t.Context(), nil))
	require.Zero(t, countRecords(t, a))
}

// TestPurgeLeavesChangedRecords changes and adds records between the preview
// and the deletion.
func TestPurgeLeavesChangedRecords(t *testing.T) {
	t.Parallel()
	a, errOut := newTestApp(t, 3)
	c := newTestPurge(a)
	plan, err := c.preview(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, plan.Matched)

	s, err := a.openWrite(t.Context())
	require.NoError(t, err)
	rec, err := s.Get(t.Context(), idem.Key{Scope: "charge", ID: "0001"})
	require.NoError(t, err)
	_, err = s.Swap(t.Context(), rec.Version, rec)
	require.NoError(t, err)
	_, err = s.Create(t.Context(), testRecord(s, "new"))
	require.NoError(t, err)
	require.NoError(t, s.Close())

	require.NoError(t, c.delete(t.Context(), plan))
	require.Equal(t, 2, plan.Deleted)
	require.Equal(t, 1, plan.Changed)
	require.EqualValues(t, 2, countRecords(t, a))
	require.Equal(t, exitPartial, a.report(t.Context(), plan.err()))
	require.Contains(t, errOut.String(), "1 record was changed meanwhile and left alone")
}

func TestPurgeAsks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answer string
		includeLive  bool
		agreed       bool
	}{
		{"yes", "y\n", false, true},
		{"no", "n\n", false, false},
		{"end of input", "", false, false},
		{"live by name", "idem.db\n", true, true},
		{"live by yes", "yes\n", true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, errOut := newTestApp(t, 2)
			a.in = strings.NewReader(tt.answer)
			c := newTestPurge(a)
			c.yes, c.includeProcessing = false, tt.includeLive
			plan, err := c.preview(t.Context())
			require.NoError(t, err)
			err = c.consent(t.Context(), plan)
			require.Contains(t, errOut.String(), "2 of 2 records in idem.db would be deleted")
			if tt.agreed {
				require.NoError(t, err)
				return
			}
			var refused *exitError
			require.True(t, errors.As(err, &refused))
			require.Equal(t, exitFailure, refused.code)
		})
	}
}

// TestPurgeQuestionIsInterrupted: Ctrl-C ends a question that nobody answers.
func TestPurgeQuestionIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, includeLive := range []bool{false, true} {
		a, errOut := newTestApp(t, 2)
		in, typed := io.Pipe()
		t.Cleanup(func() { _ = typed.Close() })
		a.in = in
		c := newTestPurge(a)
		c.yes, c.includeProcessing = false, includeLive
		plan, err := c.preview(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(&signalError{syscall.SIGINT})
		require.Equal(t, exitInterrupt, a.report(ctx, c.consent(ctx, plan)))
		require.Contains(t, errOut.String(), "\nidemctl: stopped by interrupt: nothing was deleted\n")
		require.EqualValues(t, 2, countRecords(t, a))
	}
}

// TestToolsAreNoService makes sure that a purge does not count as time in which
// a service was up: the grace after downtime and the expiry of files that only
// commands use depend on it.
func TestToolsAreNoService(t *testing.T) {
	t.Parallel()
	a, _ := newTestApp(t, 1)
	require.NoError(t, newTestPurge(a).run(t.Context(), nil))
	r, err := a.newReader(t.Context())
	require.NoError(t, err)
	require.Zero(t, r.info.GraceUntil)
}
