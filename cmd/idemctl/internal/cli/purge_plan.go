package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// purgePlan is what a purge would do, and then what it has done.
type purgePlan struct {
	name    string // of the file
	byKey   bool   // the user named each record
	now     time.Time
	version uint64 // the store's at the preview: newer records are left alone

	DryRun      bool     `json:"dry_run"`
	Total       int64    `json:"records"`
	Matched     int      `json:"matched"`
	Bytes       int64    `json:"matched_bytes"`
	Interrupted int      `json:"matched_interrupted"`
	InUse       int      `json:"in_use"`  // left alone because an attempt runs
	Missing     []string `json:"missing"` // keys given that have no record
	Damaged     int      `json:"damaged"` // left alone because they cannot be read
	Deleted     int      `json:"deleted"`
	Changed     int      `json:"changed"` // left alone because they were changed meanwhile
}

func (p *purgePlan) describe() string {
	text := fmt.Sprintf("%s of %s in %s would be deleted (about %s).", render.Count(int64(p.Matched)),
		plural(int(p.Total), "record"), render.Escape(p.name), render.Bytes(p.Bytes))
	if p.Interrupted > 0 {
		text += fmt.Sprintf("\n%s interrupted: nobody knows whether the work was done.", wereAre(int64(p.Interrupted), "attempt"))
	}
	return text
}

// stopped adds to what has ended a purge early how far it had come.
func (p *purgePlan) stopped(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	done := fmt.Sprintf("stopped after %s of %s", render.Count(int64(p.Deleted)), render.Count(int64(p.Matched)))
	if by := interrupted(ctx); by != nil {
		return fail(by.code(), "", "%s; run it again to continue", done)
	}
	return fmt.Errorf("%s: %w", done, err)
}

// err is the exit code of a purge that has come to its end.
func (p *purgePlan) err() error {
	var reasons []string
	e := &exitError{code: exitPartial}
	if len(p.Missing) > 0 {
		reasons = append(reasons, "no record for "+strings.Join(quoteAll(p.Missing), ", "))
		if p.Matched+p.InUse == 0 {
			e.code = exitNotFound
		}
	}
	if p.InUse > 0 && p.byKey {
		reasons, e.try = append(reasons, wereAre(int64(p.InUse), "record")+" in progress and left alone"), "--include-processing"
	}
	if p.Changed > 0 {
		reasons, e.try = append(reasons, wereAre(int64(p.Changed), "record")+" changed meanwhile and left alone"), "run it again"
	}
	if len(reasons) == 0 {
		return nil
	}
	e.err = errors.New(strings.Join(reasons, "; "))
	return e
}

func quoteAll(texts []string) []string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return quoted
}
