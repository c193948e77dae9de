package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/idembolt/idem"
)

// repeat is what answering a repeat of a finished operation costs.
type repeat struct {
	From   string        `json:"from"`
	Took   time.Duration `json:"ns"`
	Allocs float64       `json:"allocs"`
}

const (
	repeatSlices   = 21 // of which the median counts
	repeatsInSlice = 10_000
)

// Repeat measures repeats from the cache and, without one, from the bbolt file.
func (s *idemStore) Repeat() ([]repeat, error) {
	keys := s.keys
	if len(keys) == 0 {
		return nil, errors.New("no records to repeat")
	}
	cached, err := s.repeat("cache", keys[:min(1000, len(keys))])
	if err != nil {
		return nil, err
	}
	err = s.guard.Close()
	if err != nil {
		return nil, err
	}
	if s.guard, err = idem.Open(s.path, idem.WithBolt(idem.BoltConfig{CacheBytes: -1})); err != nil {
		return nil, err
	}
	uncached, err := s.repeat("bbolt", keys)
	return []repeat{cached, uncached}, err
}

func (s *idemStore) repeat(from string, keys []string) (repeat, error) {
	for _, key := range keys { // fills the cache, or the system's
		if err := s.Do(key, nil, nil); !errors.Is(err, errTaken) {
			return repeat{}, errors.Join(errors.New("a finished operation has run again"), err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var rounds []round
	for range repeatSlices {
		began := time.Now()
		for i := range repeatsInSlice {
			if err := s.Do(keys[i%len(keys)], nil, nil); !errors.Is(err, errTaken) {
				return repeat{}, err
			}
		}
		rounds = append(rounds, round{Elapsed: time.Since(began)})
	}
	runtime.ReadMemStats(&after)
	took := median(rounds, func(r round) time.Duration { return r.Elapsed })
	allocs := float64(after.Mallocs-before.Mallocs) / (repeatSlices * repeatsInSlice)
	return repeat{From: from, Took: took / repeatsInSlice, Allocs: allocs}, nil
}

// measureRepeats has Repeat run in a worker of its own, if idem is measured.
func (p *plan) measureRepeats(ctx context.Context, rep *report) (err error) {
	if !slices.ContainsFunc(p.stores, func(c candidate) bool { return c.name == "idem" }) {
		return nil
	}
	process, err := startProcess(ctx, "idem")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.end()) }()
	dir := filepath.Join(p.dir, "repeat")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if _, err := process.ask(request{Op: "setup", Target: target{Dir: dir, Records: p.records, Callers: 1}}); err != nil {
		return err
	}
	got, err := process.ask(request{Op: "repeat"})
	rep.Repeats = got.Repeats
	return err
}
