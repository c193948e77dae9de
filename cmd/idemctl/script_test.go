package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	bolt "go.etcd.io/bbolt"

	"github.com/idembolt/idem"
)

// lockHolder is a program that holds the file of its argument until its input
// ends. It prints a line once it does.
func lockHolder() {
	s, err := idem.OpenBoltStore(context.Background(), os.Args[1], idem.BoltConfig{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// holdLock holds a file in another process until the script ends and sets
// HOLDER to its pid.
//
//	holdlock FILE
func holdLock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: holdlock FILE")
	}
	path, err := exec.LookPath("lockholder")
	ts.Check(err)
	holder := exec.Command(path, ts.MkAbs(args[0]))
	stdin, err := holder.StdinPipe()
	ts.Check(err)
	stdout, err := holder.StdoutPipe()
	ts.Check(err)
	ts.Check(holder.Start())
	ts.Defer(func() {
		_ = stdin.Close()
		_ = holder.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "held\n" {
		ts.Fatalf("the holder says %q: %v", line, err)
	}
	ts.Setenv("HOLDER", strconv.Itoa(holder.Process.Pid))
}

// startup is a generous measure of how long a process takes here and now to begin
// and end, which is no part of what a test wants to bound.
func startup() time.Duration {
	began := time.Now()
	_ = exec.Command("idemctl", "version").Run() // its failure shows elsewhere
	return 10 * time.Since(began)
}

// exitCode runs a program and fails unless it ends with the code, and within the
// duration beside its start-up. Its output is there for stdout and stderr.
//
//	exitcode [-within DURATION] CODE PROGRAM [ARG…]
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	limit := time.Hour
	if len(args) > 2 && args[0] == "-within" {
		var err error
		limit, err = time.ParseDuration(args[1])
		ts.Check(err)
		limit += startup()
		args = args[2:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode [-within DURATION] CODE PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	began := time.Now()
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	if took := time.Since(began); took > limit {
		ts.Fatalf("it took %s, more than %s", took, limit)
	}
}

// checkJSON fails unless the file is exactly one JSON document, and unless each
// member named has the value given, in JSON.
//
//	json FILE [MEMBER.MEMBER=VALUE…]
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: json FILE [MEMBER=VALUE…]")
	}
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	for _, claim := range args[1:] {
		path, want, _ := strings.Cut(claim, "=")
		got, err := json.Marshal(member(doc, strings.Split(path, ".")))
		ts.Check(err)
		if string(got) != want {
			ts.Fatalf("%s is %s, want %s", path, got, want)
		}
	}
}

// member walks into objects by name and into arrays by index.
func member(doc any, path []string) any {
	for _, step := range path {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil
			}
			doc = v[i]
		default:
			return nil
		}
	}
	return doc
}

// checkJSONL fails unless every line of the file is a JSON object and there are
// as many as given.
//
//	jsonl FILE COUNT
func checkJSONL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: jsonl FILE COUNT")
	}
	lines := strings.SplitAfter(ts.ReadFile(args[0]), "\n")
	lines = lines[:len(lines)-1] // what follows the last newline
	for i, line := range lines {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			ts.Fatalf("%s:%d: %v", args[0], i+1, err)
		}
	}
	if want, err := strconv.Atoi(args[1]); err != nil || len(lines) != want {
		ts.Fatalf("%s has %d lines, want %s", args[0], len(lines), args[1])
	}
}

// damage puts garbage under a key of the records, which need not exist: as a Go
// string in quotes it may hold any byte.
//
//	damage FILE KEY
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage FILE KEY")
	}
	key := args[1]
	if strings.HasPrefix(key, `"`) {
		var err error
		key, err = strconv.Unquote(key)
		ts.Check(err)
	}
	db, err := bolt.Open(ts.MkAbs(args[0]), 0o600, nil)
	ts.Check(err)
	ts.Check(errors.Join(db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("idem.records")).Put([]byte(key), bytes.Repeat([]byte{1}, 40))
	}), db.Close()))
}
