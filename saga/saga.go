// Package saga undoes the finished steps of work that fails in the middle.
//
// Use it where several systems are changed one after the other and none of them
// can be part of a transaction: a seat is reserved, a card is charged, a parcel is
// ordered. Every step comes with what undoes it. Where all changes are in the
// store's own file use idem.DoTx, which leaves nothing to undo; where a failure
// only means to try again later use idem.Step alone.
//
//	book := saga.Func(func(ctx context.Context, s *saga.Saga) (Ticket, error) {
//		seat, err := saga.Step(ctx, s, "seat", reserve, release)
//		if err != nil {
//			return Ticket{}, err
//		}
//		charge, err := saga.Step(ctx, s, "charge", pay, refund)
//		…
//	})
//	res, err := idem.Do(ctx, guard, key, order, book)
//
// # How it ends
//
// A nil error completes the work. An error marked with idem.Permanent undoes every
// finished step, the last one first, and is then recorded: repeats get it as
// *idem.FailedError. Any other error leaves the finished steps as they are, and the
// next call goes on after them.
//
// All that decides about the way, such as whether an order was canceled meanwhile,
// must be a step, or the input: an attempt that goes on has to come by the same
// steps.
//
// Steps and what undoes them are steps of the attempt, see idem.Step: each is
// remembered durably, with one write, and does not run again when the process dies
// and the work is called anew. Under a policy with idem.Rerun it then goes on in the
// direction it was going; under others a person decides first, for a step may have
// happened that is not remembered. Whoever calls the work again brings it to its
// end: nothing runs by itself.
//
// A step and its undo are two steps of the attempt, so a saga has about 127 of them
// (see idem.MaxSteps, and idem.MaxStepBytes for their results); one too many, or one
// with a name too long to be undone under, ends the work and undoes the others.
//
// An undo that fails is tried again by the next call. It must be safe to repeat, as
// must every step: the process can die in it. Use Attempt.ChildKey for what they ask
// of other systems.
package saga

import (
	"context"
	"errors"
	"fmt"

	"github.com/idembolt/idem"
)

// undoing is the name of the step that says why the work is undone. From then on
// nothing goes forward any more.
const undoing = "saga: undo"

// Saga is one attempt's work. It is for the function that Func was given, and not
// for concurrent use.
type Saga struct {
	attempt *idem.Attempt
	steps   int    // forward
	undo    []undo // of the finished steps, in their order
}

type undo struct {
	name string
	run  func(context.Context) error
}

// UndoError says that the work failed and could not be undone completely. The next
// call with the key tries again.
type UndoError struct {
	Step  string // that could not be undone
	Cause string // why the work is undone
	Err   error  // why that failed
}

// Error says it in one line.
func (e *UndoError) Error() string {
	return fmt.Sprintf("undo step %q after %q: %v", e.Step, e.Cause, e.Err)
}

// Unwrap returns what kept the step from being undone.
func (e *UndoError) Unwrap() error { return e.Err }

// errTurned ends the forward direction when an earlier attempt has turned back. It
// never leaves the package: the recorded cause takes its place.
var errTurned = errors.New("the work is being undone")

// Attempt returns the attempt of the work.
func (s *Saga) Attempt() *idem.Attempt { return s.attempt }

// Func returns a function for idem.Do that runs fn and undoes its steps if it fails
// for good.
func Func[T any](fn func(context.Context, *Saga) (T, error)) func(context.Context, *idem.Attempt) (T, error) {
	return func(ctx context.Context, a *idem.Attempt) (T, error) {
		s := &Saga{attempt: a}
		value, err := fn(ctx, s)
		if s.turned() || err != nil && idem.Classify(err) == idem.OutcomePermanent {
			return value, s.rollBack(ctx, err)
		}
		return value, err
	}
}

// Step is idem.Step with what undoes it, which is given the step's result. A nil
// undo is for a step that needs none. The error of fn decides what follows: see the
// package documentation. Step must be called for the same names in the same order
// every time, and its error must end the work.
func Step[T any](ctx context.Context, s *Saga, name string, fn func(context.Context) (T, error), undoIt func(context.Context, T) error) (T, error) {
	if s.turned() {
		var zero T
		return zero, errTurned
	}
	if err := s.room(name, undoIt != nil); err != nil {
		var zero T
		return zero, err
	}
	result, err := idem.Step(ctx, s.attempt, name, fn)
	if err == nil && undoIt != nil {
		s.undo = append(s.undo, undo{name, func(ctx context.Context) error { return undoIt(ctx, result) }})
	}
	return result, err
}

// room ends the work, which undoes it, with a step that could not be undone: there
// would be too many steps, or the name of its undo would be too long.
func (s *Saga) room(name string, hasUndo bool) error {
	s.steps++
	n := s.steps + 1 + len(s.undo)
	if hasUndo {
		n++
	}
	if n > idem.MaxSteps || len(undoing)+1+len(name) > idem.MaxStepNameBytes {
		return idem.Permanent(fmt.Errorf("%w: step %q could not be undone: its name is too long, or there are too many steps", idem.ErrInvalidInput, name))
	}
	return nil
}

// turned reports whether the next remembered step is the turning point.
func (s *Saga) turned() bool {
	name, ok := s.attempt.NextStep()
	return ok && name == undoing
}

// rollBack undoes what is finished. It returns the failure that the work ends with,
// or a *UndoError if it has to be called again. Before it has come to all remembered
// steps it does not know what to undo: then idem.Do says so.
func (s *Saga) rollBack(ctx context.Context, err error) error {
	if name, remembered := s.attempt.NextStep(); remembered && name != undoing {
		return err
	}
	cause, stepErr := idem.Step(ctx, s.attempt, undoing, func(context.Context) (string, error) { return err.Error(), nil })
	if stepErr != nil {
		return stepErr
	}
	for i := len(s.undo) - 1; i >= 0; i-- {
		u := s.undo[i]
		_, stepErr := idem.Step(ctx, s.attempt, undoing+" "+u.name, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, u.run(ctx)
		})
		if stepErr == nil {
			continue
		}
		if idem.Classify(stepErr) == idem.OutcomePermanent { // of the undo, not of the work: that is not undone
			stepErr = errors.New(stepErr.Error())
		}
		return &UndoError{Step: u.name, Cause: cause, Err: stepErr}
	}
	if err == nil || err.Error() != cause {
		err = errors.New(cause) // of the attempt that turned back
	}
	return idem.Permanent(err)
}
