package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/runner"
)

// onceRun is one call of run on its way to an outcome.
type onceRun struct {
	app     *app
	flags   runFlags
	key     idem.Key
	argv    []string
	signals *runner.Signals
	store   *patientStore
}

// commandError says that the command ended by itself with a code that is not 0.
type commandError struct{ code int }

func (e *commandError) Error() string {
	return fmt.Sprintf("the command ended with exit code %d", e.code)
}

// do runs or replays, prints what there is to print, and returns the outcome.
func (r *onceRun) do() runOutcome {
	parts, err := r.input()
	if err != nil {
		return r.report(idem.Result[runner.Result]{}, err)
	}
	res, err := r.once(r.signals.Context(), parts)
	o := r.report(res, err)
	r.tidy()
	return o
}

func (r *onceRun) once(ctx context.Context, parts idem.Parts) (res idem.Result[runner.Result], err error) {
	path, err := r.app.writePath(exitRunFailure)
	if err != nil {
		return res, err
	}
	if r.store, err = openPatient(ctx, path, r.app.boltConfig()); err != nil {
		return res, err
	}
	g, err := idem.New(r.store, idem.WithPolicy(r.flags.policy()), idem.WithKind(recordKindRun),
		idem.WithClassifier(r.outcomeOf), idem.WithWait(r.flags.wait))
	if err != nil {
		return res, err
	}
	return idem.Do(ctx, g, r.key, parts, r.execute)
}

// execute runs the command. Its context ends only if the key is lost: signals
// are the command's to answer, and then its end is still recorded.
func (r *onceRun) execute(ctx context.Context, at *idem.Attempt) (runner.Result, error) {
	res, err := runner.Run(ctx, runner.Command{
		Args: r.argv, Env: append(os.Environ(), attemptEnv(at)...),
		Stdin: r.app.in, Stdout: r.app.out, Stderr: r.app.err,
		Keep: r.flags.maxOutput, Timeout: r.flags.timeout, Terminal: runner.Terminal(r.app.in),
	}, r.signals)
	if err == nil && res.ExitCode != 0 {
		err = &commandError{res.ExitCode}
	}
	return res, err
}

// outcomeOf says what an error of execute means for the key. What is no
// commandError and was not cut short did not start.
func (r *onceRun) outcomeOf(err error) idem.Outcome {
	var cut *runner.CutShortError
	var failed *commandError
	switch {
	case errors.As(err, &cut):
		return idem.OutcomeUnknown
	case errors.As(err, &failed) && r.flags.onFailure == replayFailure:
		return idem.OutcomePermanent
	}
	return idem.OutcomeNothing
}

func attemptEnv(at *idem.Attempt) []string {
	return []string{
		"IDEM_KEY=" + at.Key().String(),
		"IDEM_ATTEMPT=" + strconv.Itoa(at.Number()),
		"IDEM_FENCE=" + strconv.FormatUint(at.Version(), 10),
		"IDEM_CHILD_KEY=" + at.ChildKey(commandChildName),
	}
}

// tidy writes the counts of this call and removes some of what has expired, if
// the file is free: nobody else does that where only commands use it.
func (r *onceRun) tidy() {
	if r.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestTidying)
	defer cancel()
	_, _ = r.store.Expire(ctx, expiredPerRun) // the next run does what this one could not
}
