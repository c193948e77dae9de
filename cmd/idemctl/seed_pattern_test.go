package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/debounce"
	"github.com/idembolt/idem/fsm"
	"github.com/idembolt/idem/idemhttp"
	"github.com/idembolt/idem/inbox"
	"github.com/idembolt/idem/lock"
	"github.com/idembolt/idem/outbox"
	"github.com/idembolt/idem/table"
)

// pattern writes with one of the packages on top of the library, as a service that
// has ended since. Words in double quotes are Go strings.
//
//	pattern FILE fsm SCOPE/ID STATE…      from NEW through these, each with a payload
//	pattern FILE table SCOPE ID JSON      with a unique column, receipt
//	pattern FILE lock SCOPE NAME          held until the script ends
//	pattern FILE debounce SCOPE NAME
//	pattern FILE inbox SOURCE ID
//	pattern FILE intent SCOPE NAME
//	pattern FILE http KEY STATUS OMITTED  a response, with a body of 11 bytes if OMITTED is 0
//	pattern FILE event ID PAYLOAD         an event of order/o-ID
//	pattern FILE park ERROR               the relay gives up on all events with that error
//	pattern FILE raw BUCKET KEY VALUE     any bytes
func pattern(ts *testscript.TestScript, neg bool, args []string) {
	writers := map[string]func(context.Context, *idem.BoltStore, []string) error{
		"fsm": writeFSM, "table": writeTable, "debounce": writeDebounce, "inbox": writeInbox, "intent": writeIntent,
		"http": writeHTTP, "event": writeEvent, "park": park, "raw": writeRaw,
	}
	if neg || len(args) < 3 {
		ts.Fatalf("usage: pattern FILE PACKAGE ARG…")
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, `"`) {
			var err error
			args[i], err = strconv.Unquote(arg)
			ts.Check(err)
		}
	}
	if args[1] == "lock" {
		holdPatternLock(ts, ts.MkAbs(args[0]), args[2], args[3])
		return
	}
	write := writers[args[1]]
	if write == nil {
		ts.Fatalf("unknown package %q", args[1])
	}
	ctx := context.Background()
	s, err := idem.OpenBoltStore(ctx, ts.MkAbs(args[0]), idem.BoltConfig{Visitor: true})
	ts.Check(err)
	ts.Check(errors.Join(write(ctx, s, args[2:]), s.Close()))
}

func writeFSM(ctx context.Context, s *idem.BoltStore, args []string) error {
	scope, id, _ := strings.Cut(args[0], "/")
	def := fsm.Definition{Initial: "NEW", Transitions: map[string][]string{}}
	from := "NEW"
	for _, to := range args[1:] {
		def.Transitions[from] = append(def.Transitions[from], to)
		from = to
	}
	if _, known := def.Transitions[from]; !known {
		def.Transitions[from] = nil
	}
	m, err := fsm.New(s, scope, def, fsm.WithTraceFrom(func(context.Context) string { return "trace-7" }))
	if err != nil {
		return err
	}
	_, err = m.Start(ctx, id)
	for _, to := range args[1:] {
		if err == nil {
			_, err = m.Fire(ctx, id, to, []byte("receipt 42"))
		}
	}
	return err
}

func writeTable(ctx context.Context, s *idem.BoltStore, args []string) error {
	type row map[string]any
	receipt := func(r row) string { return fmt.Sprint(r["receipt"]) }
	t, err := table.New[row](s, args[0], table.WithUnique("receipt", receipt))
	if err != nil {
		return err
	}
	var value row
	if err := json.Unmarshal([]byte(args[2]), &value); err != nil {
		return err
	}
	_, err = t.Insert(ctx, args[1], value)
	return err
}

func holdPatternLock(ts *testscript.TestScript, path, scope, name string) {
	ctx := context.Background()
	s, err := idem.OpenTransient(ctx, path, idem.BoltConfig{LockTimeout: time.Minute})
	ts.Check(err)
	g, err := idem.New(s)
	ts.Check(err)
	locks, err := lock.New(g, scope, lock.WithTTL(10*time.Minute))
	ts.Check(err)
	held, err := locks.Lock(ctx, name)
	ts.Check(err)
	ts.Setenv("FENCE", strconv.FormatUint(held.Fence(), 10))
	ts.Defer(func() { _ = errors.Join(held.Unlock(ctx), g.Close()) }) // the directory goes with the script
}

func writeDebounce(ctx context.Context, s *idem.BoltStore, args []string) error {
	d, err := debounce.New(s, args[0], time.Hour)
	if err != nil {
		return err
	}
	_, err = d.Allow(ctx, args[1])
	return err
}

func writeInbox(ctx context.Context, s *idem.BoltStore, args []string) error {
	g, err := idem.New(s)
	if err != nil {
		return err
	}
	in, err := inbox.New(g, args[0])
	if err == nil {
		_, err = in.Handle(ctx, args[1], func(_ context.Context, tx *idem.Tx) error {
			return tx.Bucket("balances").Put([]byte("a"), []byte("1"))
		})
	}
	return errors.Join(err, g.Shutdown(ctx))
}

func writeIntent(ctx context.Context, s *idem.BoltStore, args []string) error {
	intents, err := idemhttp.NewIntents(s, args[0])
	if err != nil {
		return err
	}
	_, err = intents.Begin(ctx, args[1])
	return err
}

func writeHTTP(ctx context.Context, s *idem.BoltStore, args []string) error {
	status, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	omitted, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	r := idemhttp.Response{
		Status: status, Omitted: idemhttp.Omission(omitted), Length: 3 << 20, Chunks: 12, ChunkSet: 7,
		Header: http.Header{"Content-Type": {"text/plain\x1b[2J"}, "Set-Cookie": {"session=s3cret"}},
	}
	if r.Omitted == idemhttp.Kept {
		r.Body = []byte("hello world")
	}
	value, err := r.MarshalBinary()
	if err != nil {
		return err
	}
	key, err := idem.ParseKey(args[0])
	if err != nil {
		return err
	}
	now := s.Now()
	_, err = s.Create(ctx, idem.Record{
		Key: key, State: idem.Completed, Kind: "http", Attempt: 1, Value: value,
		CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour),
	})
	return err
}

func writeEvent(ctx context.Context, s *idem.BoltStore, args []string) error {
	o, err := outbox.New(s)
	if err != nil {
		return err
	}
	return s.Update(ctx, func(tx *idem.Tx) error {
		return o.Append(tx, outbox.Event{
			ID: args[0], AggregateType: "order", AggregateID: "o-" + args[0], Type: "OrderPlaced", Payload: []byte(args[1]),
			Headers: map[string]string{"tenant": "acme\x1b[2J"}, TraceID: "trace-9",
		})
	})
}

// park lets a relay fail until nothing is left to try.
func park(ctx context.Context, s *idem.BoltStore, args []string) error {
	o, err := outbox.New(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	relay, err := outbox.NewRelay(o, func(context.Context, outbox.Event) error { return errors.New(args[0]) },
		outbox.WithMaxAttempts(1), outbox.WithBackoff(time.Millisecond, time.Millisecond))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- relay.Run(running) }()
	for {
		changed, unwatch := s.WatchBucket(outbox.DefaultBucket)
		waiting, err := o.List(ctx, 0, 1)
		if err != nil || len(waiting) == 0 {
			unwatch()
			stop()
			return errors.Join(err, <-ended)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		unwatch()
	}
}

func writeRaw(ctx context.Context, s *idem.BoltStore, args []string) error {
	return s.Update(ctx, func(tx *idem.Tx) error { return tx.Bucket(args[0]).Put([]byte(args[1]), []byte(args[2])) })
}
