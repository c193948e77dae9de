package idemtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

// guardChecks see the store from above: what a guard makes of it.
func guardChecks() []check {
	return []check{
		{name: "a hundred callers of one key run the function once", overlaps: true, run: guardCrowd},
		{name: "two guards on one store run the function once", overlaps: true, run: guardPair},
		{name: "caller during a run is told that it is in progress", run: guardInProgress},
		{name: "result is replayed, and other input is a mismatch", run: guardReplays},
		{name: "permanent failure is replayed", run: guardFails},
		{name: "released key runs again at the next call", run: guardReleases},
		{name: "unknown outcome fails closed", run: guardUnknown},
		{name: "attempt past its lease fails closed", run: guardLeaseOver},
		{name: "attempt that Rerun took over cannot write any more", run: guardTakeover},
		{name: "expired result runs again", run: guardExpired},
	}
}

// guard is one on the store as checks call it, with every optional interface
// that the store has, unless it is closed and opened between calls.
func (s *subject) guard(t *testing.T, opts ...idem.Option) *idem.Guard {
	t.Helper()
	if _, ok := s.Store.(idem.SecretKeeper); !ok {
		opts = append(opts, idem.WithSecret([]byte("idemtest idemtest idemtest")))
	}
	g, err := idem.New(s.Store, opts...)
	if err != nil {
		t.Fatalf("New = %v, want a guard on the store", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
	})
	return g
}

// returning is a function that counts its runs.
func returning(runs *atomic.Int64, value string, err error) func(context.Context, *idem.Attempt) (string, error) {
	return func(context.Context, *idem.Attempt) (string, error) {
		runs.Add(1)
		return value, err
	}
}

// wantDo calls Do and checks its answer and how often the function has run.
func wantDo(t *testing.T, g *idem.Guard, fn func(context.Context, *idem.Attempt) (string, error), runs *atomic.Int64, want string, wantErr error, wantRuns int64) {
	t.Helper()
	res, err := idem.Do(t.Context(), g, key("a"), "input", fn)
	if res.Value != want || !errors.Is(err, wantErr) {
		t.Errorf("Do(%q) = %q, %v, want %q, %v", key("a"), res.Value, err, want, wantErr)
	}
	if n := runs.Load(); n != wantRuns {
		t.Errorf("Do(%q): the function has run %d times, want %d", key("a"), n, wantRuns)
	}
}

func guardCrowd(t *testing.T, s *subject) { crowdRunsOnce(t, 100, s.guard(t)) }

func guardPair(t *testing.T, s *subject) { crowdRunsOnce(t, 20, s.guard(t), s.guard(t)) }

func crowdRunsOnce(t *testing.T, callers int, guards ...*idem.Guard) {
	t.Helper()
	var runs atomic.Int64
	fn := func(ctx context.Context, _ *idem.Attempt) (string, error) {
		runs.Add(1)
		select { // long enough for others to arrive
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		return "result", ctx.Err()
	}
	together(callers, func(i int) {
		res, err := idem.Do(t.Context(), guards[i%len(guards)], key("a"), nil, fn, idem.WithWait(idem.UntilDeadline))
		if err != nil || res.Value != "result" {
			t.Errorf("Do(%q) = %q, %v, want %q, nil", key("a"), res.Value, err, "result")
		}
	})
	if n := runs.Load(); n != 1 {
		t.Errorf("Do(%q) ran the function %d times for %d callers, want once", key("a"), n, callers)
	}
}

func guardInProgress(t *testing.T, s *subject) {
	g := s.guard(t)
	var runs atomic.Int64
	wantDo(t, g, func(context.Context, *idem.Attempt) (string, error) {
		wantDo(t, g, returning(&runs, "second", nil), &runs, "", idem.ErrInProgress, 0)
		return "first", nil
	}, &runs, "first", nil, 0)
}

func guardReplays(t *testing.T, s *subject) {
	g := s.guard(t)
	var runs atomic.Int64
	for _, value := range []string{"first", "second"} {
		wantDo(t, g, returning(&runs, value, nil), &runs, "first", nil, 1)
	}
	_, err := idem.Do(t.Context(), g, key("a"), "other input", returning(&runs, "third", nil))
	if !errors.Is(err, idem.ErrMismatch) || runs.Load() != 1 {
		t.Errorf("Do(%q) with other input = %v after %d runs, want ErrMismatch after 1", key("a"), err, runs.Load())
	}
}

func guardFails(t *testing.T, s *subject) {
	g := s.guard(t)
	var runs atomic.Int64
	declined := errors.New("declined")
	wantDo(t, g, returning(&runs, "", idem.Permanent(declined)), &runs, "", declined, 1)
	wantDo(t, g, returning(&runs, "", nil), &runs, "", idem.ErrFailed, 1)
}

func guardReleases(t *testing.T, s *subject) {
	g := s.guard(t)
	var runs atomic.Int64
	refused := errors.New("connection refused")
	wantDo(t, g, returning(&runs, "", refused), &runs, "", refused, 1)
	s.wantAbsent(t, key("a"))
	wantDo(t, g, returning(&runs, "done", nil), &runs, "done", nil, 2)
	wantDo(t, g, returning(&runs, "again", nil), &runs, "done", nil, 2)
}

func guardUnknown(t *testing.T, s *subject) {
	g := s.guard(t)
	var runs atomic.Int64
	silent := errors.New("no answer")
	wantDo(t, g, returning(&runs, "", idem.Unknown(silent)), &runs, "", silent, 1)
	wantDo(t, g, returning(&runs, "", nil), &runs, "", idem.ErrInterrupted, 1)
	wantDo(t, g, returning(&runs, "", nil), &runs, "", idem.ErrInterrupted, 1)
}

// abandoned is the claim of an attempt whose process is gone.
func (s *subject) abandoned(t *testing.T) idem.Record {
	t.Helper()
	rec := s.processing("a")
	rec.Owner, rec.LeaseUntil = "gone#1", rec.CreatedAt.Add(-time.Minute)
	return s.create(t, rec)
}

func guardLeaseOver(t *testing.T, s *subject) {
	rec := s.abandoned(t)
	var ran bool
	_, err := idem.Do(t.Context(), s.guard(t), rec.Key, nil, func(context.Context, *idem.Attempt) (string, error) {
		ran = true
		return "", nil
	})
	if !errors.Is(err, idem.ErrInterrupted) || ran {
		t.Errorf("Do(%q) over an abandoned attempt = %v, ran %t, want ErrInterrupted without a run", rec.Key, err, ran)
	}
	s.wantRecord(t, rec)
}

// guardTakeover lets the old attempt come back from the dead, during the new
// one's run and after it.
func guardTakeover(t *testing.T, s *subject) {
	policy := idem.API
	policy.OnInterrupted = idem.Rerun()
	old := s.abandoned(t)
	late := withValue(s.completed("a"), "late")
	refused := func(when string) {
		if got, err := s.Swap(t.Context(), old.Version, late); !errors.Is(err, idem.ErrConflict) {
			t.Errorf("Swap(%q, version %d) by the old attempt %s = %s, want ErrConflict", old.Key, old.Version, when, outcome(got, err))
		}
		if err := s.Delete(t.Context(), old.Key, old.Version); !errors.Is(err, idem.ErrConflict) {
			t.Errorf("Delete(%q, version %d) by the old attempt %s = %v, want ErrConflict", old.Key, old.Version, when, err)
		}
	}
	res, err := idem.Do(t.Context(), s.guard(t, idem.WithPolicy(policy)), old.Key, nil, func(_ context.Context, a *idem.Attempt) (string, error) {
		if a.Number() != old.Attempt+1 || a.Version() <= old.Version {
			t.Errorf("attempt number %d version %d took over, want number %d and a version above %d", a.Number(), a.Version(), old.Attempt+1, old.Version)
		}
		refused("during the new one")
		return "new", nil
	})
	if err != nil || res.Value != "new" {
		t.Fatalf("Do(%q) over an abandoned attempt under Rerun = %q, %v, want %q, nil", old.Key, res.Value, err, "new")
	}
	refused("after the new one")
	s.wantRecord(t, res.Record)
}

func guardExpired(t *testing.T, s *subject) {
	g := s.guard(t)
	var runs atomic.Int64
	s.create(t, s.expired("a", time.Hour))
	wantDo(t, g, returning(&runs, "new", nil), &runs, "new", nil, 1)
	wantDo(t, g, returning(&runs, "newer", nil), &runs, "new", nil, 1)
}
