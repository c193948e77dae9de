package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// plan is what is measured.
type plan struct {
	stores  []candidate
	callers []int
	records int
	rounds  int
	length  time.Duration // of a round
	dir     string
	profile string
	log     io.Writer
}

// result is how one store did with one number of callers.
type result struct {
	Store      string        `json:"store"`
	Callers    int           `json:"callers"`
	Rate       float64       `json:"ops_per_second"`
	P50        time.Duration `json:"p50_ns"`
	P99        time.Duration `json:"p99_ns"`
	BytesPerOp float64       `json:"bytes_per_op"`
	Ratio      float64       `json:"idem_ratio"` // rate of idem by rate of this store
	Rounds     []round       `json:"rounds"`
}

// runner is one store in the interleaved rounds.
type runner struct {
	*process
	dir     string
	written int64 // by the disk, in its turns
	rounds  []round
}

// measure runs all rounds of one number of callers: every store begins with the
// same number of records, and they take turns.
func (p *plan) measure(ctx context.Context, callers int, rep *report) (err error) {
	var runners []*runner
	defer func() {
		for _, r := range runners {
			err = errors.Join(err, r.end(), os.RemoveAll(r.dir))
		}
	}()
	for _, c := range p.stores {
		r, err := p.start(ctx, c.name, callers)
		if r != nil {
			runners = append(runners, r)
		}
		if errors.Is(err, errNotInstalled) {
			rep.leaveOut(c.name, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	if err := p.watchIdle(rep); err != nil {
		return err
	}
	for n := range p.rounds {
		for _, r := range runners {
			if err := p.turn(r, callers, n); err != nil {
				return err
			}
		}
	}
	for _, r := range runners {
		if r.rounds == nil {
			continue // left out
		}
		if err := p.finish(r, callers, rep); err != nil {
			return err
		}
	}
	return nil
}

// start fills a store and warms it up: what it does once, like making its log,
// is not measured.
func (p *plan) start(ctx context.Context, name string, callers int) (*runner, error) {
	fmt.Fprintf(p.log, "%d callers: fill %s\n", callers, name)
	dir := filepath.Join(p.dir, name+"-"+strconv.Itoa(callers))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	process, err := startProcess(ctx, name)
	if err != nil {
		return nil, err
	}
	r := &runner{process: process, dir: dir}
	setup := request{Op: "setup", Target: target{Dir: dir, Records: p.records, Callers: callers}}
	if p.profile != "" {
		setup.Profile = filepath.Join(p.profile, fmt.Sprintf("%s-%d.pprof", name, callers))
	}
	if _, err := r.ask(setup); err != nil {
		return r, err
	}
	if _, err := r.ask(request{Op: "round", Length: p.length / 2}); err != nil {
		return r, err
	}
	r.settle(p.pause())
	r.rounds = make([]round, 0, p.rounds)
	return r, nil
}

// pause is how long a store must have written nothing to be at rest.
func (p *plan) pause() time.Duration { return p.length / 10 }

func (p *plan) turn(r *runner, callers, n int) error {
	if r.rounds == nil {
		return nil // left out
	}
	got, err := p.counted(r, request{Op: "round", Length: p.length})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.log, "%d callers: round %d: %s %.0f ops/s\n", callers, n+1, r.name, got.Round.rate())
	r.rounds = append(r.rounds, got.Round)
	return nil
}

// counted has a request done and counts what the disk writes for it, at once or
// soon after.
func (p *plan) counted(r *runner, req request) (reply, error) {
	before, err := deviceBytes(r.dir)
	if err != nil {
		return reply{}, err
	}
	got, err := r.ask(req)
	if err != nil {
		return reply{}, err
	}
	r.settle(p.pause())
	after, err := deviceBytes(r.dir)
	r.written += after - before
	return got, err
}

// watchIdle measures how much the disk writes for others.
func (p *plan) watchIdle(rep *report) error {
	before, err := deviceBytes(p.dir)
	if err != nil {
		return err
	}
	time.Sleep(p.length)
	after, err := deviceBytes(p.dir)
	rep.OthersWrite = append(rep.OthersWrite, float64(after-before)/p.length.Seconds())
	return err
}

// finish closes a store and counts what that writes as well: it is work that was
// put off.
func (p *plan) finish(r *runner, callers int, rep *report) error {
	if _, err := p.counted(r, request{Op: "close"}); err != nil {
		return err
	}
	ops := 0
	for _, round := range r.rounds {
		ops += round.Ops
	}
	rep.Results = append(rep.Results, result{
		Store: r.name, Callers: callers, Rounds: r.rounds,
		Rate:       median(r.rounds, round.rate),
		P50:        median(r.rounds, func(r round) time.Duration { return r.P50 }),
		P99:        median(r.rounds, func(r round) time.Duration { return r.P99 }),
		BytesPerOp: float64(r.written) / float64(ops),
	})
	return nil
}
