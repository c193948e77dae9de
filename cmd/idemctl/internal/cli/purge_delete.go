package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

const (
	// purgeWriters delete at the same time, so that the store can make many
	// deletions durable with one sync.
	purgeWriters = 512
	purgeWindow  = 1024
	expireBatch  = 1024
	// holdTime is how long a purge keeps the file from others at a stretch. It is
	// far below the shortest lease: a command that runs meanwhile must be able to
	// renew its own.
	holdTime = 250 * time.Millisecond
)

// delete carries the plan out. It counts what it did, whatever ends it.
func (c *purgeCommand) delete(ctx context.Context, plan *purgePlan) error {
	step := c.deleteMatching
	switch {
	case c.expired:
		step = c.expire
	case len(c.keys) > 0:
		step = c.deleteKeys
	}
	shown := newProgress(c.app, plan)
	defer shown.end()
	position := ""
	for {
		more, err := c.hold(ctx, func(s *idem.BoltStore, info idem.BoltInfo) (bool, error) {
			for began := time.Now(); ; {
				more, err := step(ctx, s, info, plan, &position)
				shown.step()
				if !more || err != nil || time.Since(began) > holdTime {
					return more, err
				}
			}
		})
		if err != nil || !more {
			return err
		}
		if !sleep(ctx, yieldTime) {
			return context.Cause(ctx)
		}
	}
}

// hold opens the file for one stretch of work.
func (c *purgeCommand) hold(ctx context.Context, work func(*idem.BoltStore, idem.BoltInfo) (bool, error)) (more bool, err error) {
	s, err := c.openWrite(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	info, err := s.Info(ctx)
	if err != nil {
		return false, err
	}
	return work(s, info)
}

// expire removes one batch of expired records.
func (c *purgeCommand) expire(ctx context.Context, s *idem.BoltStore, _ idem.BoltInfo, plan *purgePlan, _ *string) (bool, error) {
	n, err := s.Expire(ctx, expireBatch)
	plan.Deleted += n
	return n > 0, err
}

// deleteKeys removes the records of the keys given.
func (c *purgeCommand) deleteKeys(ctx context.Context, s *idem.BoltStore, info idem.BoltInfo, plan *purgePlan, _ *string) (bool, error) {
	judge := newJudge(s, info)
	var window []entry
	for _, key := range c.keys {
		rec, err := s.Get(ctx, key)
		if errors.Is(err, idem.ErrNotFound) {
			continue // missing at the preview, or gone since
		}
		if err != nil {
			return false, err
		}
		window = c.choose(window, judge.entry(ctx, rec, nil), plan)
	}
	return false, c.deleteWindow(ctx, s, window, plan)
}

// deleteMatching removes one window of the records that fulfil the conditions,
// those after position.
func (c *purgeCommand) deleteMatching(ctx context.Context, s *idem.BoltStore, info idem.BoltInfo, plan *purgePlan, position *string) (more bool, err error) {
	judge := newJudge(s, info)
	var window []entry
	q := c.filter.query()
	q.After = *position
	seen := 0
	for rec, err := range s.Scan(ctx, q) {
		if err != nil && rec.Key == (idem.Key{}) {
			return false, err
		}
		if err != nil {
			continue // counted at the preview
		}
		e := judge.entry(ctx, rec, nil)
		if c.filter.selects(&e, plan.now) {
			window = c.choose(window, e, plan)
		}
		*position = e.Key.String()
		if seen++; seen >= 4*purgeWindow || len(window) >= purgeWindow {
			more = true
			break
		}
	}
	return more, c.deleteWindow(ctx, s, window, plan)
}

// choose adds a record to the window if it is still what the preview showed.
func (c *purgeCommand) choose(window []entry, e entry, plan *purgePlan) []entry {
	switch {
	case e.Version > plan.version:
		if !e.CreatedAt.After(plan.now) {
			plan.Changed++ // else it was made since then and never shown
		}
	case c.deletes(&e):
		return append(window, e)
	}
	return window
}

// deleteWindow deletes the records in the versions seen, many at a time.
func (c *purgeCommand) deleteWindow(ctx context.Context, s *idem.BoltStore, window []entry, plan *purgePlan) error {
	next := make(chan entry)
	var mu sync.Mutex // guards plan and firstErr
	var firstErr error
	var writers sync.WaitGroup
	for range min(purgeWriters, len(window)) {
		writers.Go(func() {
			for e := range next {
				err := s.Delete(ctx, e.Key, e.Version)
				mu.Lock()
				switch {
				case err == nil:
					plan.Deleted++
				case errors.Is(err, idem.ErrConflict):
					plan.Changed++
				case errors.Is(err, idem.ErrNotFound): // it has expired since it was read
				case firstErr == nil:
					firstErr = err
				}
				mu.Unlock()
			}
		})
	}
	for _, e := range window {
		if ctx.Err() != nil {
			break
		}
		next <- e
	}
	close(next)
	writers.Wait()
	if firstErr == nil {
		firstErr = context.Cause(ctx)
	}
	return firstErr
}

// progress tells a person who waits how far a purge has come.
type progress struct {
	app   *app
	plan  *purgePlan
	tty   bool
	last  time.Time
	shown bool
}

func newProgress(a *app, plan *purgePlan) *progress {
	return &progress{app: a, plan: plan, tty: render.IsTTY(a.err), last: time.Now()}
}

// step redraws on a terminal twice a second, and writes a line elsewhere every
// ten seconds.
func (p *progress) step() {
	every, before, after := 10*time.Second, "", "\n"
	if p.tty {
		every, before, after = 500*time.Millisecond, "\r", ""
	}
	if p.app.flags.quiet || time.Since(p.last) < every {
		return
	}
	p.last, p.shown = time.Now(), true
	fmt.Fprintf(p.app.err, "%sdeleted %s of %s%s", before, render.Count(int64(p.plan.Deleted)), render.Count(int64(p.plan.Matched)), after)
}

func (p *progress) end() {
	if p.tty && p.shown {
		fmt.Fprint(p.app.err, "\n")
	}
}
