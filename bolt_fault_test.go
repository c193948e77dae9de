package idem

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The fault tests share what is in this file. Each of them injects one kind of
// fault, requires that it was really hit, and then requires that the store kept
// its promises: what was acknowledged is there, nothing runs twice, a replay is
// the stored value or an error, and errors are typed.

const faultScope = "fault"

func faultKey(id string) Key { return Key{Scope: faultScope, ID: id} }

// faultRecord is a record as a guard would write it. A Processing one gets the
// given owner; the others get the value.
func faultRecord(id string, state State, value []byte, owner string) Record {
	now := time.Now().UTC().Truncate(time.Microsecond)
	rec := Record{
		Key: faultKey(id), State: state, Kind: "func", Owner: owner, Attempt: 1, Value: value,
		CreatedAt: now, StartedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	if state == Processing {
		rec.Value, rec.LeaseUntil = nil, now.Add(time.Minute)
	}
	return rec
}

func completed(id, value string) Record { return faultRecord(id, Completed, []byte(value), "") }

// faultPath is the path of a store that does not exist yet.
func faultPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "idem.db")
}

// openFault opens a store that is closed at the latest when the test ends.
func openFault(t *testing.T, path string, c BoltConfig) *BoltStore {
	t.Helper()
	s, err := OpenBoltStore(t.Context(), path, c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // of a store that a test has broken on purpose
	return s
}

// faultFile makes a closed store that holds the records k0, k1, … with values of
// the given size, and returns its path.
func faultFile(t *testing.T, records, valueBytes int) string {
	t.Helper()
	path := faultPath(t)
	s := openFault(t, path, BoltConfig{})
	for i := range records {
		_, err := s.Create(t.Context(), completed(fmt.Sprintf("k%d", i), faultValue(i, valueBytes)))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	return path
}

// faultValue is the value of record i of faultFile.
func faultValue(i, size int) string {
	text := fmt.Sprintf("value-%d-", i)
	return strings.Repeat(text, size/len(text)+1)[:size]
}

// requireSound opens the file, requires that a full check finds nothing, and
// closes it.
func requireSound(t *testing.T, path string) {
	t.Helper()
	s := openFault(t, path, BoltConfig{LockTimeout: -1})
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Zero(t, report.Problems, "%v", report.Findings)
	require.NoError(t, s.Close())
}

// requirePoisoned requires that every method of the store refuses with
// ErrPoisoned and hands back no record.
func requirePoisoned(t *testing.T, s *BoltStore, key Key) {
	t.Helper()
	ctx := t.Context()
	rec, err := s.Create(ctx, completed("after-poison", "v"))
	require.ErrorIs(t, err, ErrPoisoned)
	require.Equal(t, Record{}, rec)
	rec, err = s.Swap(ctx, 1, completed(key.ID, "v"))
	require.ErrorIs(t, err, ErrPoisoned)
	require.Equal(t, Record{}, rec)
	rec, err = s.Get(ctx, key)
	require.ErrorIs(t, err, ErrPoisoned)
	require.Equal(t, Record{}, rec)
	require.ErrorIs(t, s.Delete(ctx, key, 1), ErrPoisoned)
	_, err = s.Expire(ctx, 10)
	require.ErrorIs(t, err, ErrPoisoned)
	for rec, err := range s.Scan(ctx, Query{}) {
		require.ErrorIs(t, err, ErrPoisoned)
		require.Equal(t, Record{}, rec)
	}
	_, err = s.Info(ctx)
	require.ErrorIs(t, err, ErrPoisoned)
	_, err = s.Check(ctx)
	require.ErrorIs(t, err, ErrPoisoned)
	_, err = s.History(ctx)
	require.ErrorIs(t, err, ErrPoisoned)
}

// untouched reads a file and returns a function that requires that neither its
// bytes nor its modification time have changed.
func untouched(t *testing.T, path string) func() {
	t.Helper()
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(path, old, old))
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	return func() {
		t.Helper()
		info, err := os.Lstat(path)
		require.NoError(t, err)
		require.True(t, info.ModTime().Equal(old), "modified at %s", info.ModTime())
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "the bytes have changed")
		names, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		require.Equal(t, []string{path}, names, "something was left beside it")
	}
}

// isAny reports whether err matches one of the given errors.
func isAny(err error, wanted ...error) bool {
	return slices.ContainsFunc(wanted, func(want error) bool { return errors.Is(err, want) })
}

// A test that must not break the test process runs itself again in a child: it
// calls isFaultChild first and does its work there.
const faultChildEnv = "IDEM_FAULT_CHILD"

func isFaultChild(t *testing.T) bool { return os.Getenv(faultChildEnv) == t.Name() }

// faultChild is a command that runs the calling test in a process of its own.
func faultChild(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(self, "-test.run=^"+regexp.QuoteMeta(name)+"$", "-test.timeout=60s")
	cmd.Env = append(append(os.Environ(), faultChildEnv+"="+name), env...)
	return cmd
}

const faultInjected = "the fault was injected"

// runFaultChild runs the calling test in a child and requires that it passes and
// says that its fault was injected.
func runFaultChild(t *testing.T, env ...string) {
	t.Helper()
	out, err := faultChild(t, env...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), faultInjected)
}
