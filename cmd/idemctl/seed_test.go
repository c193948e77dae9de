package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/internal/procid"
)

// seed writes records with the library, as a service that has ended since.
//
//	seed FILE [KEY STATE [NAME=VALUE…]]
//
// Without a key it only makes the file. STATE is completed, failed, interrupted, processing (owned by this test, which
// is alive), abandoned (stored as processing by an owner that is gone), overdue
// (stored as processing, its lease is over) or expired. NAME is
//
//	count        make so many; the key then holds a %d
//	age          how long ago it was created; default 1h
//	expires      in how long it expires; default 23h
//	took         how long the function ran; default 40ms
//	value        default {"ok":true} for completed
//	kind         default func
//	replays, mismatches
func seed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) == 2 {
		ts.Fatalf("usage: seed FILE [KEY STATE [NAME=VALUE…]]")
	}
	ctx := context.Background()
	s, err := idem.OpenBoltStore(ctx, ts.MkAbs(args[0]), idem.BoltConfig{Visitor: true})
	ts.Check(err)
	if len(args) == 1 {
		ts.Check(s.Close())
		return
	}
	plan := seedPlan{key: args[1], state: args[2], settings: map[string]string{
		"count": "1", "age": "1h", "expires": "23h", "took": "40ms", "kind": "func", "replays": "0", "mismatches": "0",
	}}
	for _, setting := range args[3:] {
		name, value, _ := strings.Cut(setting, "=")
		plan.settings[name] = value
	}
	ts.Check(errors.Join(plan.write(ctx, s), s.Close()))
}

type seedPlan struct {
	key, state string
	settings   map[string]string
	err        error
}

func (p *seedPlan) duration(name string) time.Duration {
	d, err := time.ParseDuration(p.settings[name])
	p.err = errors.Join(p.err, err)
	return d
}

func (p *seedPlan) number(name string) int {
	n, err := strconv.Atoi(p.settings[name])
	p.err = errors.Join(p.err, err)
	return n
}

func (p *seedPlan) write(ctx context.Context, s *idem.BoltStore) error {
	count := p.number("count")
	if p.err != nil {
		return p.err
	}
	errs := make([]error, count)
	var writers sync.WaitGroup
	slots := make(chan struct{}, 256) // so that commits are shared
	for i := range count {
		slots <- struct{}{}
		writers.Go(func() {
			defer func() { <-slots }()
			key := p.key
			if strings.Contains(key, "%") {
				key = fmt.Sprintf(key, i)
			}
			plan := *p
			errs[i] = plan.writeOne(ctx, s, key)
		})
	}
	writers.Wait()
	return errors.Join(errs...)
}

func (p *seedPlan) writeOne(ctx context.Context, s *idem.BoltStore, text string) error {
	key, err := idem.ParseKey(text)
	if err != nil {
		return err
	}
	rec, err := p.record(s, key)
	if err != nil {
		return err
	}
	if _, err := s.Create(ctx, rec); err != nil {
		return err
	}
	for range p.number("replays") {
		s.RecordEvent(idem.Event{Kind: idem.EventReplayed, Key: key})
	}
	for i := range p.number("mismatches") {
		other, err := idem.NewFingerprint(s.Secret(), map[string]int{"amount": i + 2})
		if err != nil {
			return err
		}
		s.RecordEvent(idem.Event{Kind: idem.EventMismatch, Key: key, Fingerprint: other})
	}
	s.RecordEvent(idem.Event{Kind: idem.EventExecuted, Key: key})
	return p.err
}

func (p *seedPlan) record(s *idem.BoltStore, key idem.Key) (idem.Record, error) {
	created := s.Now().Add(-p.duration("age"))
	fp, err := idem.NewFingerprint(s.Secret(), map[string]int{"amount": 1})
	if err != nil {
		return idem.Record{}, err
	}
	rec := idem.Record{
		Key: key, Fingerprint: fp, Kind: p.settings["kind"], Owner: "r:" + strings.Repeat("0", 32) + "#0000000000000001",
		Attempt: 1, TraceID: "trace-1", CreatedAt: created, StartedAt: created, UpdatedAt: created.Add(p.duration("took")),
		ExpiresAt: s.Now().Add(p.duration("expires")),
	}
	switch p.state {
	case "completed":
		rec.State, rec.Value = idem.Completed, []byte(`{"ok":true}`)
	case "failed":
		rec.State, rec.Error = idem.Failed, "card declined"
	case "interrupted":
		rec.State, rec.Error = idem.Interrupted, "context deadline exceeded"
	case "processing":
		rec.State, rec.LeaseUntil = idem.Processing, s.Now().Add(10*time.Minute)
		rec.Owner = procid.Self().String() + "#0000000000000001"
	case "abandoned":
		rec.State, rec.LeaseUntil = idem.Processing, s.Now().Add(10*time.Minute)
	case "overdue":
		rec.State, rec.LeaseUntil = idem.Processing, s.Now().Add(-4*time.Minute)
		rec.Owner = procid.Self().String() + "#0000000000000001"
	case "expired":
		rec.State, rec.Value, rec.ExpiresAt = idem.Completed, []byte("old"), s.Now().Add(-time.Minute)
	default:
		return rec, fmt.Errorf("unknown state %q", p.state)
	}
	if value, given := p.settings["value"]; given {
		rec.Value = []byte(value)
	}
	return rec, p.err
}
