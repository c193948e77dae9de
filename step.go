package idem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// MaxSteps and MaxStepBytes bound what an attempt remembers: the number of
	// steps, and the size of their names and results together.
	MaxSteps     = 256
	MaxStepBytes = 1 << 20

	// MaxStepNameBytes bounds the name of a step.
	MaxStepNameBytes = 128
)

// StepResult is a finished step of an attempt.
type StepResult struct {
	Name  string
	Value []byte // the result, encoded as Do encodes one
}

// Step runs one step of an attempt's work, once per key: its result is stored in
// the record before Step returns, and when the function runs again after an
// interruption, Step returns that result and does not call fn. So work of several
// steps goes on after the last one that finished. Each costs one durable write.
//
// The steps are told by their order and name, so the function must take the same
// ones in the same order every time, with results that depend on its input and
// earlier steps only. Where it does not, after a change of the program for
// instance, Step returns a *StepError and fn does not run. Steps of one attempt
// run one at a time.
//
// A function that ends, with nil or Permanent, before it has come to all remembered
// steps has not ended: that is a *StepError too. So whatever decides about its way,
// such as whether an order was canceled meanwhile, must be a step itself.
//
// A step may run twice if the process dies in it: use Attempt.ChildKey for what it
// asks of others.
//
// An attempt that has finished steps does not release its key when the function
// fails with a plain error: its steps did happen. The record is kept as
// Interrupted with Resume set, and the next call goes on under any policy.
//
// Errors: fn's own; *StepError; ErrUndecodable if a remembered result does not fit
// T. If the result cannot be stored the step was done and is not remembered: the
// error is marked with Unknown and matches ErrNotRecorded. In a DoTx, whose work
// happens all at once, there are no steps.
func Step[T any](ctx context.Context, a *Attempt, name string, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	if ctx.Value(stepContextKey{}) == a {
		return zero, fmt.Errorf("%w: step %q of %q: it is within another step", ErrInvalidInput, name, a.rec.Key.String())
	}
	a.steps.running.Lock()
	defer a.steps.running.Unlock()
	remembered, err := a.nextStep(name)
	if err != nil {
		return zero, err
	}
	if remembered != nil {
		v, err := decodeStep[T](a, remembered)
		if err == nil {
			a.took()
		}
		return v, err
	}
	if err := context.Cause(ctx); err != nil {
		return zero, err // a lost attempt must not go on
	}
	result, err := fn(context.WithValue(ctx, stepContextKey{}, a))
	if err != nil {
		return result, err
	}
	value, err := encodeValue(result)
	if err == nil {
		err = a.remember(StepResult{name, bytes.Clone(value)}) // fn's slice is the caller's to change
	}
	if err != nil {
		return result, Unknown(fmt.Errorf("%w: step %q of %q: %w", ErrNotRecorded, name, a.rec.Key.String(), err))
	}
	return result, nil
}

// stepper is how far an attempt has come with its steps.
type stepper struct {
	running sync.Mutex // held while a step runs
	mu      sync.Mutex // of done, and of the attempt's steps
	done    int
}

type stepContextKey struct{}

// took is called when a remembered step was taken.
func (a *Attempt) took() {
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	a.steps.done++
}

// StepError says that a function did not take the step it took before.
type StepError struct {
	Key    Key
	Index  int    // from 0
	Before string // name of the step that is remembered; "" if the attempt can have none
	Now    string // "" if the function ended
}

// Error says it in one line.
func (e *StepError) Error() string {
	if e.Before == "" {
		return fmt.Sprintf("step %q of %q: a transaction has no steps", e.Now, e.Key.String())
	}
	if e.Now == "" {
		return fmt.Sprintf("step %d of %q was %q before and the function ended without it: what decides about its way must be a step",
			e.Index+1, e.Key.String(), e.Before)
	}
	return fmt.Sprintf("step %d of %q was %q before and is %q now: the program was changed, or does not do the same every time",
		e.Index+1, e.Key.String(), e.Before, e.Now)
}

// nextStep returns the remembered result of the step that comes next, or nil if it
// is new. The caller holds steps.running.
func (a *Attempt) nextStep(name string) (*StepResult, error) {
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	switch {
	case a.lease == nil:
		return nil, &StepError{Key: a.rec.Key, Now: name}
	case name == "" || len(name) > MaxStepNameBytes:
		return nil, fmt.Errorf("%w: step %q: a name has 1 to %d bytes", ErrInvalidInput, cutText(name, MaxStepNameBytes), MaxStepNameBytes)
	case a.steps.done < len(a.rec.Steps):
		step := &a.rec.Steps[a.steps.done]
		if step.Name != name {
			return nil, &StepError{Key: a.rec.Key, Index: a.steps.done, Before: step.Name, Now: name}
		}
		return step, nil
	case a.steps.done >= MaxSteps:
		return nil, fmt.Errorf("%w: step %q of %q: there are %d already", ErrInvalidInput, name, a.rec.Key.String(), MaxSteps)
	}
	return nil, nil
}

// NextStep returns the name of the remembered step that the attempt comes to next,
// or false if all of them are behind it.
func (a *Attempt) NextStep() (name string, ok bool) {
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	if a.steps.done >= len(a.rec.Steps) {
		return "", false
	}
	return a.rec.Steps[a.steps.done].Name, true
}

// untakenStep returns a *StepError if the function ends before it has come to every
// remembered step.
func (a *Attempt) untakenStep() error {
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	if a.steps.done >= len(a.rec.Steps) {
		return nil
	}
	return &StepError{Key: a.rec.Key, Index: a.steps.done, Before: a.rec.Steps[a.steps.done].Name}
}

// remember stores the result of a step.
func (a *Attempt) remember(step StepResult) error {
	steps := append(a.rec.Steps[:len(a.rec.Steps):len(a.rec.Steps)], step)
	if size := stepBytes(steps); size > MaxStepBytes {
		return fmt.Errorf("the results of the steps have %d bytes, at most %d are kept", size, MaxStepBytes)
	}
	if err := a.lease.write(func(r *Record) { r.Steps = steps }); err != nil {
		return err
	}
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	a.rec.Steps = steps
	a.steps.done++
	return nil
}

func stepBytes(steps []StepResult) (n int) {
	for _, s := range steps {
		n += len(s.Name) + len(s.Value)
	}
	return n
}

func decodeStep[T any](a *Attempt, step *StepResult) (T, error) {
	v, err := DecodeValue[T](Record{Key: a.rec.Key, Value: bytes.Clone(step.Value)})
	if err != nil {
		return v, fmt.Errorf("step %q: %w", step.Name, err)
	}
	return v, nil
}

// write stores the record with a change, and renews the lease with it. It tries
// twice: the first answer may be about an earlier renewal that was written
// although it failed.
func (l *lease) write(change func(*Record)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for again := false; ; again = true {
		switch {
		case l.lost != nil:
			return l.lost
		case l.ended:
			return fmt.Errorf("%w: the attempt has ended", ErrLeaseLost)
		}
		next := l.rec
		change(&next)
		rec, err := l.swap(next)
		if err == nil || again || !errors.Is(err, ErrConflict) || rec.Owner != l.rec.Owner || rec.State != Processing {
			return err
		}
		l.rec = rec
	}
}

// swap writes the record with a lease that begins now.
func (l *lease) swap(next Record) (Record, error) {
	sent, now := time.Now(), l.guard.now()
	next.UpdatedAt, next.LeaseUntil = now, now.Add(l.policy.Lease)
	next.ExpiresAt = next.LeaseUntil.Add(l.policy.Retention)
	ctx, cancel := context.WithDeadline(l.writing, l.until)
	defer cancel()
	rec, err := l.guard.store.Swap(ctx, l.rec.Version, next)
	if err == nil {
		l.rec, l.until = rec, giveUpAt(sent, l.policy.Lease)
		l.timer.Reset(l.policy.Lease / 3)
	}
	return rec, err
}
