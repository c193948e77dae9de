// Command bench compares idem with other ways of keeping a claim and its result
// durably: the same work on every store, in turn, on the machine it runs on.
//
// One operation is two durable writes under a new random key of 36 bytes: a
// claim of 120 bytes if the key is new, then a result of 400 bytes. Read the
// figures as ratios within one run; a noisy disk moves them by a factor of several.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

type flags struct {
	callers, stores, dir, svg, profile, worker string
	records, rounds                            int
	length                                     time.Duration
	quick, json                                bool
}

func parseFlags() flags {
	var f flags
	flag.StringVar(&f.callers, "callers", "1,32,128", "numbers of `callers`")
	flag.StringVar(&f.stores, "stores", "", "only these `stores`: "+storeNames())
	flag.IntVar(&f.records, "records", 200_000, "`records` in the store from the start")
	flag.IntVar(&f.rounds, "rounds", 15, "`rounds` for each store and number of callers")
	flag.DurationVar(&f.length, "round", 800*time.Millisecond, "`length` of a round")
	flag.BoolVar(&f.quick, "quick", false, "20000 records, 3 rounds of 200ms: under a minute, and rough")
	flag.BoolVar(&f.json, "json", false, "print the report as JSON")
	flag.StringVar(&f.svg, "svg", "", "write a chart to `file`")
	flag.StringVar(&f.dir, "dir", "", "make the stores in a new folder in `dir`, on the disk to measure")
	flag.StringVar(&f.profile, "profile", "", "write CPU profiles of the stores in Go to `dir`")
	flag.StringVar(&f.worker, "worker", "", "used by the program itself")
	flag.Parse()
	if f.quick {
		f.records, f.rounds, f.length = 20_000, 3, 200*time.Millisecond
	}
	return f
}

func storeNames() string {
	var names []string
	for _, c := range candidates() {
		names = append(names, c.name)
	}
	return strings.Join(names, ",")
}

func main() {
	f := parseFlags()
	var err error
	if f.worker != "" {
		err = work(f.worker, os.Stdin, os.Stdout)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		err = run(ctx, f, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures everything and writes the report.
func run(ctx context.Context, f flags, out io.Writer) (err error) {
	p, err := f.plan()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.dir)) }()
	rep := newReport(p)
	for _, callers := range p.callers {
		if err := p.measure(ctx, callers, rep); err != nil {
			return err
		}
	}
	if err := p.measureRepeats(ctx, rep); err != nil {
		return err
	}
	rep.compare()
	if f.svg != "" {
		if err := writeFile(f.svg, rep.writeSVG); err != nil {
			return err
		}
	}
	if f.json {
		return rep.writeJSON(out)
	}
	return rep.writeText(out)
}

// plan checks the flags and makes the folder of the stores.
func (f flags) plan() (*plan, error) {
	p := &plan{records: f.records, rounds: f.rounds, length: f.length, profile: f.profile, log: os.Stderr}
	if f.records < 1 || f.rounds < 1 || f.length <= 0 {
		return nil, errors.New("records, rounds and their length must be positive")
	}
	for text := range strings.SplitSeq(f.callers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("number of callers %q", text)
		}
		p.callers = append(p.callers, n)
	}
	var err error
	if p.stores, err = chosen(f.stores); err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp(f.dir, "idem-bench-"); err != nil {
		return nil, err
	}
	return p, os.Chmod(p.dir, 0o755) // a server may run as another user
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
