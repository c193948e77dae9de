package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
)

type checkCommand struct {
	*app
	strict  bool
	timeout time.Duration
}

func newCheckCommand(a *app) *cobra.Command {
	c := &checkCommand{app: a}
	cmd := &cobra.Command{
		Use:     "check",
		Aliases: []string{"verify"},
		GroupID: groupMaintain,
		Short:   "Check the file for damage",
		Long: `Reads the whole file and reports what is wrong with its pages, records, expiry
index and totals. It repairs nothing. At most 20 findings are listed; -o json has
up to 1,000.

Exit code 0 means that the file is sound, 4 that it has problems, 1 that it could
not be checked.`,
		Example: "  idemctl check\n  idemctl check --strict --db /backup/idem.db",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&c.strict, "strict", false, "let warnings fail the check too")
	cmd.Flags().Var(newDurationFlag(&c.timeout, 5*time.Minute), "timeout", "give up after this time; damaged pages can make a check endless")
	return cmd
}

// checkResult is what the child process hands to its parent.
type checkResult struct {
	Info   idem.BoltInfo
	Report idem.CheckReport
	Alive  int // of the leases, those whose owner may be at work
}

const checkChildName = "check-child"

// newCheckChildCommand makes the command that does the checking. It is a
// process of its own because damaged pages can make bbolt's check run for ever,
// or panic in a goroutine that nobody can recover in.
func newCheckChildCommand(a *app) *cobra.Command {
	var limit time.Duration
	cmd := &cobra.Command{
		Use:    checkChildName,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The parent ends this process; the timer does if the parent died.
			defer time.AfterFunc(limit, func() { os.Exit(exitFailure) }).Stop()
			result, err := a.checkFile(cmd.Context())
			if err != nil {
				return err
			}
			return json.NewEncoder(a.out).Encode(result)
		},
	}
	cmd.Flags().Var(newDurationFlag(&limit, time.Hour), "limit", "end after this time")
	return cmd
}

func (a *app) checkFile(ctx context.Context) (checkResult, error) {
	var result checkResult
	s, err := a.openRead(ctx)
	if errors.Is(err, idem.ErrCorrupt) {
		return damagedFile(err), nil
	}
	if err != nil {
		return result, err
	}
	if result.Info, err = s.Info(ctx); err == nil {
		result.Report, err = s.Check(ctx)
	}
	if err == nil && pagesAreSound(result.Report) {
		result.Alive, err = countAlive(ctx, s, result.Info)
	}
	if errors.Is(err, idem.ErrCorrupt) {
		return damagedFile(err), nil
	}
	return result, errors.Join(err, s.Close())
}

func pagesAreSound(r idem.CheckReport) bool {
	return !slices.ContainsFunc(r.Findings, func(f idem.Finding) bool { return f.Area == idem.CheckPages })
}

// countAlive counts the attempts whose owner is not known to be gone.
func countAlive(ctx context.Context, s *idem.BoltStore, info idem.BoltInfo) (alive int, err error) {
	judge := newJudge(s, info)
	for rec, err := range s.Scan(ctx, idem.Query{Expired: true, OmitValues: true}) {
		if err != nil && rec.Key == (idem.Key{}) {
			return alive, err
		}
		if e := judge.entry(ctx, rec, err); e.OwnerAlive != nil && *e.OwnerAlive {
			alive++
		}
	}
	return alive, nil
}

// damagedFile is the result for a file that cannot even be read.
func damagedFile(why error) checkResult {
	finding := idem.Finding{Area: idem.CheckPages, Detail: why.Error()}
	return checkResult{Report: idem.CheckReport{Findings: []idem.Finding{finding}, Problems: 1}}
}

func (c *checkCommand) run(ctx context.Context) error {
	look, err := c.look("check")
	if err != nil {
		return err
	}
	if c.timeout == 0 {
		return usage("--timeout must be positive")
	}
	path, _, err := c.dbPath()
	if err != nil {
		return err
	}
	began := time.Now()
	result, err := c.runChild(ctx, path)
	if err != nil {
		return err
	}
	verdict := c.newCheckJSON(path, result, time.Since(began))
	if look.isJSON() {
		err = look.writeJSON(c.out, verdict)
	} else {
		p := page{out: c.out, look: look, app: c.app}
		p.check(&verdict)
		err = p.err
	}
	switch {
	case err != nil:
		return err
	case verdict.Problems > 0, c.strict && len(verdict.Warnings) > 0:
		return silent(exitProblems)
	}
	return nil
}

// runChild checks the file in another process and waits for it no longer than
// the timeout.
func (c *checkCommand) runChild(ctx context.Context, path string) (checkResult, error) {
	self, err := os.Executable()
	if err != nil {
		return checkResult{}, fmt.Errorf("find this program: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	child := exec.CommandContext(limited, self, checkChildName, "--db="+path,
		"--lock-timeout="+c.flags.lockTimeout.String(), "--limit="+(c.timeout+time.Minute).String())
	child.Args[0] = os.Args[0]
	var out bytes.Buffer
	var errOut firstBytes
	child.Stdout, child.Stderr, child.WaitDelay = &out, &errOut, time.Second
	err = child.Run()
	var result checkResult
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return result, context.Cause(ctx)
	case limited.Err() != nil:
		return result, fail(exitFailure, "--timeout with a longer time", "check of %s: it did not end within %s; pages that refer back to themselves can make it endless", path, c.timeout)
	case errors.As(err, &exit):
		return c.childFailed(exit, errOut.String())
	case err != nil:
		return result, fmt.Errorf("start the check: %w", err)
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		return result, fmt.Errorf("read the result of the check: %w", err)
	}
	return result, nil
}

// childFailed tells an error that the child has reported from its death, which
// bbolt's panics on damaged pages are.
func (c *checkCommand) childFailed(exit *exec.ExitError, said string) (checkResult, error) {
	message, reported := strings.CutPrefix(said, "idemctl: ")
	if reported {
		message, try, _ := strings.Cut(strings.TrimSpace(message), "\nTry: ")
		return checkResult{}, fail(exit.ExitCode(), try, "%s", message)
	}
	if exit.ExitCode() < 0 && said == "" {
		return checkResult{}, fail(exitFailure, "", "the check was ended from outside: %s", exit)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return damagedFile(fmt.Errorf("the check of the pages broke off: %s", orDash(first))), nil
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct{ bytes.Buffer }

func (f *firstBytes) Write(p []byte) (int, error) {
	if room := 4096 - f.Len(); room > 0 {
		f.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
