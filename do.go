package idem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Result is the answer of Do.
type Result[T any] struct {
	// Value is what the function returned, now or in the run that is replayed.
	Value T
	// Replayed is true if the function did not run in this call.
	Replayed bool
	// Record is the key's record as this call left or found it. It is zero if
	// the call did not get that far.
	Record Record
}

// Do runs fn once per key. The first call claims the key durably, runs fn and
// records how it ended; a repeat within the retention gets that result. The
// package documentation says what a call finds and how a run ends.
//
// The input is what must not change between repeats; see NewFingerprint for how
// it is compared. Nil compares nothing but the key.
//
// Results are stored as JSON, a T of []byte as it is. The context of fn is
// derived from ctx and cancelled with cause ErrLeaseLost if the attempt loses
// its key. The end of the run is recorded even if ctx has ended by then.
//
// Errors: those of the function, as Classify says what they mean;
// *InProgressError, *MismatchError, *InterruptedError and *FailedError for what
// was found; *NotRecordedError together with the value when fn ran but the end
// could not be written; ErrValueNotKept and ErrUndecodable on a repeat whose
// value is not there or does not fit T; *KeyError, ErrInvalidInput and
// *PolicyError for bad arguments; the store's error when the key could not be
// claimed, in which case fn did not run. If ctx ends before the key is claimed,
// nothing remains on disk.
//
// If fn panics the attempt is recorded as interrupted and the panic goes on.
func Do[T any](ctx context.Context, g *Guard, key Key, input any,
	fn func(context.Context, *Attempt) (T, error), opts ...CallOption,
) (Result[T], error) {
	c, err := g.newCall(ctx, key, input, opts)
	if err != nil {
		return Result[T]{}, err
	}
	rec, a, err := g.begin(ctx, &c)
	if a == nil {
		return answered[T](rec, err)
	}
	return run(ctx, a, fn)
}

// answered is the answer of a call that has not run the function.
func answered[T any](rec Record, err error) (Result[T], error) {
	if rec.State == Failed && errors.Is(err, ErrFailed) {
		res, _ := replayed[T](rec) // the failure is the answer, also where its value is missing
		return res, err
	}
	if err != nil {
		return Result[T]{Record: rec}, err
	}
	return replayed[T](rec)
}

// Func makes a function idempotent: the returned function runs fn once per key
// and replays its result otherwise. The scope names the operation, id takes the
// key's ID from the input, and the whole input is compared on repeats. fn
// reaches its attempt with AttemptFrom.
func Func[In, Out any](g *Guard, scope string, id func(In) string,
	fn func(context.Context, In) (Out, error), opts ...CallOption,
) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		res, err := Do(ctx, g, Key{Scope: scope, ID: id(in)}, in,
			func(ctx context.Context, _ *Attempt) (Out, error) { return fn(ctx, in) }, opts...)
		return res.Value, err
	}
}

func replayed[T any](rec Record) (Result[T], error) {
	res := Result[T]{Replayed: true, Record: rec}
	if rec.ValueOmitted > 0 {
		return res, fmt.Errorf("%q: %w", rec.Key.String(), ErrValueNotKept)
	}
	var err error
	if res.Value, err = DecodeValue[T](rec); err != nil {
		return res, err
	}
	return res, nil
}

// run calls fn and sees to it that its end is recorded, however it ends.
func run[T any](ctx context.Context, a *Attempt, fn func(context.Context, *Attempt) (T, error)) (res Result[T], err error) {
	defer a.guard.running.Done()
	returned := false
	defer func() {
		if returned {
			return
		}
		cause := errors.New("the function ended its goroutine")
		v := recover()
		if v != nil {
			cause = fmt.Errorf("panic: %v", v)
		}
		_, _ = a.fail(nil, cause, OutcomeUnknown) // the panic is what the caller must see; events carry the rest
		if v != nil {
			panic(v)
		}
	}()
	var fnErr error
	res.Value, fnErr = fn(a.start(ctx), a)
	value, encodeErr := encodeValue(res.Value) // may panic too, in a MarshalJSON of T
	if untaken := a.untakenStep(); untaken != nil && (fnErr == nil || a.call.classify(fnErr) == OutcomePermanent) {
		fnErr = untaken
	}
	if fnErr == nil {
		returned = true
		res.Record, err = a.complete(value, encodeErr)
		return res, err
	}
	outcome := a.call.classify(fnErr) // may panic too
	returned = true
	res.Record, err = a.fail(value, fnErr, outcome) // a value that does not encode is not worth a second error
	return res, err
}

// isRaw reports whether results of type T are stored as they are.
func isRaw[T any]() bool {
	_, raw := any((*T)(nil)).(*[]byte)
	return raw
}

// encodeValue is the stored form of a result: JSON, or the bytes themselves.
func encodeValue[T any](v T) ([]byte, error) {
	if isRaw[T]() {
		return any(v).([]byte), nil
	}
	return json.Marshal(v)
}

// DecodeValue reads the result that Do stored in a record. It returns an error
// that matches ErrUndecodable if it does not fit T.
func DecodeValue[T any](rec Record) (T, error) {
	if isRaw[T]() {
		return any(rec.Value).(T), nil
	}
	var v T
	if err := json.Unmarshal(rec.Value, &v); err != nil {
		return v, fmt.Errorf("%w: %q into %T: %w", ErrUndecodable, rec.Key.String(), v, err)
	}
	return v, nil
}
