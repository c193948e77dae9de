package idem

import (
	"context"
	"errors"
	"sync"
	"time"
)

// JanitorConfig configures a Janitor.
type JanitorConfig struct {
	// Interval is how often expired records are looked for. 0 means one minute.
	Interval time.Duration
	// Batch is how many records are removed in one write. 0 means 256.
	Batch int
	// Pause is the shortest pause between two batches of one round. The janitor
	// also pauses as long as the last batch took, so that it never takes more
	// than half of the store's time. 0 means 5 ms.
	Pause time.Duration
	// OnRound is called after every round with the number of records removed
	// and the error that ended the round, if any. It must not close the janitor
	// or its guard, which wait for it. Nil means not to report.
	OnRound func(removed int, err error)
}

func (c JanitorConfig) withDefaults() (JanitorConfig, error) {
	if c.Interval < 0 || c.Batch < 0 || c.Pause < 0 {
		return c, errors.New("janitor: Interval, Batch and Pause must not be negative")
	}
	if c.Interval == 0 {
		c.Interval = time.Minute
	}
	if c.Batch == 0 {
		c.Batch = 256
	}
	if c.Pause == 0 {
		c.Pause = 5 * time.Millisecond
	}
	return c, nil
}

// Janitor removes expired records of a store in the background. A round that
// finds nothing writes nothing.
type Janitor struct {
	store  Store
	config JanitorConfig
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// StartJanitor starts a janitor; its Close stops it. The first round begins
// after one interval. It returns an error if a field of c is negative.
func StartJanitor(store Store, c JanitorConfig) (*Janitor, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	j := &Janitor{store: store, config: c, cancel: cancel}
	j.done.Go(func() { j.run(ctx) })
	return j, nil
}

// Close stops the janitor and waits for it. It returns nil and may be called
// more than once.
func (j *Janitor) Close() error {
	j.cancel()
	j.done.Wait()
	return nil
}

func (j *Janitor) run(ctx context.Context) {
	for pause(ctx, j.config.Interval) {
		removed, err := j.round(ctx)
		if ctx.Err() == nil && j.config.OnRound != nil {
			j.config.OnRound(removed, err)
		}
	}
}

// round removes all that has expired by now, in batches.
func (j *Janitor) round(ctx context.Context) (removed int, err error) {
	for {
		began := time.Now()
		n, err := j.store.Expire(ctx, j.config.Batch)
		removed += n
		if err != nil || n < j.config.Batch || !pause(ctx, max(j.config.Pause, time.Since(began))) {
			return removed, err
		}
	}
}

// pause waits for d and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
