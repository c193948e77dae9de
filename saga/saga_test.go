package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/saga"
)

var key = idem.Key{Scope: "trip", ID: "1"}

func newGuard(t *testing.T, recovery idem.Recovery) *idem.Guard {
	t.Helper()
	policy := idem.Orders
	policy.OnInterrupted = recovery
	g, err := idem.New(idem.NewMemoryStore(idem.MemoryConfig{}), idem.WithPolicy(policy))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// world is what the steps change, and where things go wrong: trouble is called with
// every point of every step and undo.
type world struct {
	log     []string
	done    map[string]int
	trouble func(point string) error
}

func (w *world) step(ctx context.Context, s *saga.Saga, name string) error {
	_, err := saga.Step(ctx, s, name,
		func(context.Context) (string, error) { return name + " result", w.change(name, "do "+name, 1) },
		func(_ context.Context, result string) error {
			if result != name+" result" {
				return fmt.Errorf("undo got %q", result)
			}
			return w.change(name, "undo "+name, -1)
		})
	return err
}

func (w *world) change(name, what string, by int) error {
	if err := w.trouble("before " + what); err != nil {
		return err
	}
	w.log = append(w.log, what)
	w.done[name] = max(0, min(1, w.done[name]+by)) // each is safe to repeat
	return w.trouble("after " + what)
}

var names = []string{"seat", "charge", "parcel"}

func (w *world) trip(ctx context.Context, s *saga.Saga) (string, error) {
	for _, name := range names {
		if err := w.step(ctx, s, name); err != nil {
			return "", err
		}
	}
	if err := w.trouble("at the end"); err != nil {
		return "", err
	}
	return "booked", nil
}

func newWorld(trouble func(string) error) *world {
	return &world{done: make(map[string]int), trouble: trouble}
}

func TestSagaCompletes(t *testing.T) {
	t.Parallel()
	w := newWorld(func(string) error { return nil })
	g := newGuard(t, idem.FailClosed())
	for _, replayed := range []bool{false, true} {
		res, err := idem.Do(t.Context(), g, key, nil, saga.Func(w.trip))
		require.NoError(t, err)
		require.Equal(t, "booked", res.Value)
		require.Equal(t, replayed, res.Replayed)
	}
	require.Equal(t, []string{"do seat", "do charge", "do parcel"}, w.log)
}

func TestSagaUndoesInReverse(t *testing.T) {
	t.Parallel()
	declined := errors.New("declined")
	tests := []struct {
		point string
		log   []string
	}{
		{"before do seat", nil},
		{"before do charge", []string{"do seat", "undo seat"}},
		{"before do parcel", []string{"do seat", "do charge", "undo charge", "undo seat"}},
		{"at the end", []string{"do seat", "do charge", "do parcel", "undo parcel", "undo charge", "undo seat"}},
	}
	for _, tt := range tests {
		t.Run(tt.point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(func(point string) error {
				if point == tt.point {
					return idem.Permanent(declined)
				}
				return nil
			})
			g := newGuard(t, idem.FailClosed())
			_, err := idem.Do(t.Context(), g, key, nil, saga.Func(w.trip))
			require.ErrorIs(t, err, declined)
			require.Equal(t, tt.log, w.log)
			_, err = idem.Do(t.Context(), g, key, nil, saga.Func(w.trip))
			var failed *idem.FailedError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, "declined", failed.Record.Error)
			require.Equal(t, tt.log, w.log)
		})
	}
}

// TestSagaStaysOnItsWay: whatever happens once at whichever point, calling again
// brings the work to its end in the direction it was going.
func TestSagaStaysOnItsWay(t *testing.T) {
	t.Parallel()
	kinds := map[string]func() error{
		"plain":   func() error { return errors.New("try again") },
		"unknown": func() error { return idem.Unknown(errors.New("timeout")) },
		"crash":   func() error { panic("crash") },
	}
	var points []string
	for _, name := range names {
		for _, what := range []string{"before do ", "after do ", "before undo ", "after undo "} {
			points = append(points, what+name)
		}
	}
	for kind, happen := range kinds {
		for _, point := range append(points, "at the end") {
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprint(kind, " ", point, " fails ", fails), func(t *testing.T) {
					t.Parallel()
					happened := false
					w := newWorld(func(at string) error {
						switch {
						case at == point && !happened:
							happened = true
							return happen()
						case at == "at the end" && fails:
							return idem.Permanent(errors.New("sold out"))
						}
						return nil
					})
					g := newGuard(t, idem.Rerun())
					err := errors.New("not called")
					for try := 0; try < 3; try++ {
						func() {
							defer func() { _ = recover() }()
							_, err = idem.Do(t.Context(), g, key, nil, saga.Func(w.trip))
						}()
						if rec, getErr := g.Store().Get(t.Context(), key); getErr == nil && rec.State != idem.Interrupted {
							break
						}
					}
					if !fails {
						require.NoError(t, err)
						require.Equal(t, map[string]int{"seat": 1, "charge": 1, "parcel": 1}, w.done)
						require.NotContains(t, w.log, "undo seat")
						return
					}
					require.EqualError(t, errors.Unwrap(err), "sold out", "%v", err)
					require.Equal(t, map[string]int{"seat": 0, "charge": 0, "parcel": 0}, w.done)
				})
			}
		}
	}
}

// TestSagaUndoFailsForGood: the work is not over before it is undone.
func TestSagaUndoFailsForGood(t *testing.T) {
	t.Parallel()
	broken := true
	w := newWorld(func(point string) error {
		switch {
		case point == "before do charge":
			return idem.Permanent(errors.New("declined"))
		case point == "before undo seat" && broken:
			return idem.Permanent(errors.New("no such seat"))
		}
		return nil
	})
	g := newGuard(t, idem.FailClosed())
	for range 2 {
		_, err := idem.Do(t.Context(), g, key, nil, saga.Func(w.trip))
		var undo *saga.UndoError
		require.ErrorAs(t, err, &undo)
		require.Equal(t, "seat", undo.Step)
		require.Equal(t, "declined", undo.Cause)
		require.EqualError(t, err, `undo step "seat" after "declined": no such seat`)
	}
	broken = false
	_, err := idem.Do(t.Context(), g, key, nil, saga.Func(w.trip))
	require.EqualError(t, err, "declined")
	require.Equal(t, []string{"do seat", "undo seat"}, w.log)
}

func TestSagaStepWithoutUndo(t *testing.T) {
	t.Parallel()
	g := newGuard(t, idem.FailClosed())
	_, err := idem.Do(t.Context(), g, key, nil, saga.Func(func(ctx context.Context, s *saga.Saga) (int, error) {
		require.NotEmpty(t, s.Attempt().ChildKey("mail"))
		if _, err := saga.Step(ctx, s, "look up", func(context.Context) (int, error) { return 1, nil }, nil); err != nil {
			return 0, err
		}
		return 0, idem.Permanent(errors.New("no"))
	}))
	require.EqualError(t, err, "no")
}

// TestSagaDecidesOutsideOfItsSteps: an attempt that would fail for good without its
// remembered steps neither forgets them nor undoes what it does not know.
func TestSagaDecidesOutsideOfItsSteps(t *testing.T) {
	t.Parallel()
	canceled := false
	w := newWorld(func(point string) error {
		if point == "before do parcel" {
			return errors.New("try again")
		}
		return nil
	})
	trip := func(ctx context.Context, s *saga.Saga) (string, error) {
		if canceled {
			return "", idem.Permanent(errors.New("canceled"))
		}
		return w.trip(ctx, s)
	}
	g := newGuard(t, idem.FailClosed())
	_, err := idem.Do(t.Context(), g, key, nil, saga.Func(trip))
	require.EqualError(t, err, "try again")
	canceled = true
	for range 2 {
		_, err = idem.Do(t.Context(), g, key, nil, saga.Func(trip))
		var untaken *idem.StepError
		require.ErrorAs(t, err, &untaken)
		require.Equal(t, "seat", untaken.Before)
		require.Empty(t, untaken.Now)
	}
	canceled = false
	w.trouble = func(string) error { return nil }
	res, err := idem.Do(t.Context(), g, key, nil, saga.Func(trip))
	require.NoError(t, err)
	require.Equal(t, "booked", res.Value)
}

// TestSagaTooLongToUndo: a step that could not be undone ends the work before it.
func TestSagaTooLongToUndo(t *testing.T) {
	t.Parallel()
	for n, undone := range map[int]int{127: 127, 128: 127, 256: 127} {
		undos := 0
		g := newGuard(t, idem.FailClosed())
		long := saga.Func(func(ctx context.Context, s *saga.Saga) (int, error) {
			for i := range n {
				_, err := saga.Step(ctx, s, fmt.Sprint(i), func(context.Context) (int, error) { return i, nil },
					func(context.Context, int) error { undos++; return nil })
				if err != nil {
					return 0, err
				}
			}
			return 0, idem.Permanent(errors.New("no"))
		})
		for range 2 {
			_, err := idem.Do(t.Context(), g, key, nil, long)
			require.Error(t, err)
		}
		rec, err := g.Store().Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, idem.Failed, rec.State)
		require.Equal(t, undone, undos)
	}
	g := newGuard(t, idem.FailClosed())
	_, err := idem.Do(t.Context(), g, key, nil, saga.Func(func(ctx context.Context, s *saga.Saga) (int, error) {
		return saga.Step(ctx, s, strings.Repeat("n", 120), func(context.Context) (int, error) { panic("it ran") }, nil)
	}))
	require.ErrorIs(t, err, idem.ErrInvalidInput)
}

// TestSagaUndecodable: a step whose result the program cannot read any more is not
// taken for undone.
func TestSagaUndecodable(t *testing.T) {
	t.Parallel()
	g := newGuard(t, idem.FailClosed())
	down, refunded := true, 0
	first := saga.Func(func(ctx context.Context, s *saga.Saga) (int, error) {
		_, err := saga.Step(ctx, s, "charge", func(context.Context) (string, error) { return "id", nil }, func(context.Context, string) error {
			if down {
				return errors.New("down")
			}
			refunded++
			return nil
		})
		if err != nil {
			return 0, err
		}
		return 0, idem.Permanent(errors.New("no"))
	})
	_, err := idem.Do(t.Context(), g, key, nil, first)
	require.ErrorContains(t, err, "down")
	down = false
	changed := saga.Func(func(ctx context.Context, s *saga.Saga) (int, error) {
		_, err := saga.Step(ctx, s, "charge", func(context.Context) (int, error) { return 0, nil }, func(context.Context, int) error { return nil })
		if err != nil {
			return 0, err
		}
		return 0, idem.Permanent(errors.New("no"))
	})
	_, err = idem.Do(t.Context(), g, key, nil, changed)
	require.ErrorIs(t, err, idem.ErrUndecodable)
	_, err = idem.Do(t.Context(), g, key, nil, first)
	require.EqualError(t, err, "no")
	require.Equal(t, 1, refunded)
}
