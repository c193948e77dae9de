package idemtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

// method is one method of a store, called so that it would succeed and change
// something if its context had not ended.
type method struct {
	name string
	call func(ctx context.Context, s *subject, current idem.Record) error
}

func methods() []method {
	return []method{
		{"Create", func(ctx context.Context, s *subject, _ idem.Record) error {
			_, err := s.Create(ctx, s.completed("b"))
			return err
		}},
		{"Swap", func(ctx context.Context, s *subject, current idem.Record) error {
			_, err := s.Swap(ctx, current.Version, withValue(s.completed("a"), "new"))
			return err
		}},
		{"Delete", func(ctx context.Context, s *subject, current idem.Record) error {
			return s.Delete(ctx, current.Key, current.Version)
		}},
		{"Get", func(ctx context.Context, s *subject, current idem.Record) error {
			_, err := s.Get(ctx, current.Key)
			return err
		}},
		{"Scan", func(ctx context.Context, s *subject, _ idem.Record) error {
			for rec, err := range s.Scan(ctx, idem.Query{}) {
				if rec.Key != (idem.Key{}) {
					return errors.New("it yielded a record")
				}
				return err
			}
			return nil
		}},
		{"Expire", func(ctx context.Context, s *subject, _ idem.Record) error {
			_, err := s.Expire(ctx, 10)
			return err
		}},
	}
}

func contextChecks() []check {
	checks := []check{
		{name: "ending after a call changes nothing", run: contextEndsLater},
		{name: "ending during a call never loses a write that returned nil", overlaps: true, run: contextEndsDuring},
	}
	for _, m := range methods() {
		checks = append(checks,
			check{name: "cancelled before " + m.name + " is its error and nothing is written", run: func(t *testing.T, s *subject) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				contextEnded(t, s, m, ctx)
			}},
			check{name: "deadline before " + m.name + " is its error and nothing is written", run: func(t *testing.T, s *subject) {
				ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
				defer cancel()
				contextEnded(t, s, m, ctx)
			}},
		)
	}
	return checks
}

func contextEnded(t *testing.T, s *subject, m method, ctx context.Context) {
	t.Helper()
	current := s.create(t, s.completed("a"))
	s.create(t, s.expired("z", time.Hour))
	if err := m.call(ctx, s, current); !errors.Is(err, ctx.Err()) {
		t.Errorf("%s with an ended context = %v, want %v", m.name, err, ctx.Err())
	}
	s.wantRecord(t, current)
	want := []string{scope + "/a"}
	if !s.selfExpiring {
		want = append(want, scope+"/z")
	}
	s.wantKeys(t, idem.Query{Expired: true}, want...)
}

func contextEndsLater(t *testing.T, s *subject) {
	ctx, cancel := context.WithCancel(t.Context())
	rec, err := s.Create(ctx, s.completed("a"))
	if err != nil {
		t.Fatalf("Create(%q) = %s, want success: the key is free", key("a"), outcome(rec, err))
	}
	cancel()
	s.wantRecord(t, rec)
}

// contextEndsDuring cancels creations at every stage. An ended context leaves it
// open whether the record was written, but nil must mean that it was.
func contextEndsDuring(t *testing.T, s *subject) {
	keys := numbered(64)
	stored := make([]idem.Record, len(keys))
	together(len(keys), func(i int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stop := time.AfterFunc(time.Duration(i)*50*time.Microsecond, cancel)
		defer stop.Stop()
		rec, err := s.Create(ctx, s.completedAt(keys[i]))
		switch {
		case err == nil:
			stored[i] = rec
		case !errors.Is(err, context.Canceled):
			t.Errorf("Create(%q) while its context ends = %s, want success or context.Canceled", keys[i], outcome(rec, err))
		}
	})
	for i, rec := range stored {
		if rec.Version != 0 {
			s.wantRecord(t, rec)
			continue
		}
		if got, err := s.Get(t.Context(), keys[i]); err != nil && !errors.Is(err, idem.ErrNotFound) {
			t.Errorf("Get(%q) = %s after its creation was cancelled, want the record or ErrNotFound", keys[i], outcome(got, err))
		}
	}
}
