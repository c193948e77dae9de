package idem

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// faultEngine is an engine with a function around its commits.
type faultEngine struct {
	engine
	around func(commit func() error) error
}

func (e *faultEngine) commit(b *batch) error {
	return e.around(func() error { return e.engine.commit(b) })
}

// aroundCommits configures a store whose commits run inside around.
func aroundCommits(around func(commit func() error) error) BoltConfig {
	return BoltConfig{engine: func(e engine) engine { return &faultEngine{e, around} }}
}

var errInjected = errors.New("injected")

// TestNthCommitFails injects a failure of the n-th commit of a script of every
// writing operation, for each n until none fires, once before and once after the
// commit was made. The operation and all later ones must be ErrPoisoned without
// a record; after reopening the file must be as before or after that operation.
func TestNthCommitFails(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		t.Run(fmt.Sprintf("commit made %t", made), func(t *testing.T) {
			t.Parallel()
			n := 0
			for fired := true; fired; n++ {
				fired = failNthCommit(t, n+1, made)
			}
			require.Equal(t, 6, n-1, "every commit of the script was to fail once")
		})
	}
}

func failNthCommit(t *testing.T, n int, made bool) (fired bool) {
	commits := 0
	config := aroundCommits(func(commit func() error) error {
		commits++
		if commits != n {
			return commit()
		}
		fired = true
		if made {
			return errors.Join(errInjected, commit())
		}
		return errInjected
	})
	path := faultPath(t)
	s := openFault(t, path, config)
	before, after := faultScript(t, s)
	if fired {
		requirePoisoned(t, s, faultKey("a"))
	}
	require.NoError(t, s.Close())

	s = openFault(t, path, BoltConfig{LockTimeout: -1})
	got := contents(t, s)
	if fired && !made {
		require.Equal(t, before, got)
	} else {
		require.Equal(t, after, got)
	}
	require.NoError(t, s.Close())
	requireSound(t, path)
	return fired
}

// faultScript writes until an operation fails, and returns what the store must
// then hold if that operation was not made, and if it was.
func faultScript(t *testing.T, s *BoltStore) (before, after map[string]string) {
	var a, b Record
	expired := completed("old", "x")
	expired.ExpiresAt = expired.CreatedAt
	steps := []struct {
		do   func() (Record, error)
		then map[string]string // what the store holds after it
	}{
		{func() (_ Record, err error) {
			a, err = s.Create(t.Context(), faultRecord("a", Processing, nil, "o"))
			return a, err
		}, map[string]string{"a": "processing "}},
		{func() (_ Record, err error) {
			a, err = s.Swap(t.Context(), a.Version, completed("a", "1"))
			return a, err
		}, map[string]string{"a": "completed 1"}},
		{func() (_ Record, err error) {
			b, err = s.Create(t.Context(), completed("b", "2"))
			return b, err
		}, map[string]string{"a": "completed 1", "b": "completed 2"}},
		{func() (Record, error) { return s.Create(t.Context(), expired) },
			map[string]string{"a": "completed 1", "b": "completed 2", "old": "completed x"}},
		{func() (Record, error) {
			_, err := s.Expire(t.Context(), 10)
			return Record{}, err
		}, map[string]string{"a": "completed 1", "b": "completed 2"}},
		{func() (Record, error) { return Record{}, s.Delete(t.Context(), a.Key, a.Version) },
			map[string]string{"b": "completed 2"}},
	}
	before = map[string]string{}
	for _, step := range steps {
		rec, err := step.do()
		after = step.then
		if err != nil {
			require.ErrorIs(t, err, ErrPoisoned)
			require.ErrorIs(t, err, errInjected, "the cause is named")
			require.ErrorContains(t, err, s.Path())
			require.Equal(t, Record{}, rec)
			return before, after
		}
		before = after
	}
	return before, after
}

// contents lists all records, expired ones too, as "state value" by id.
func contents(t *testing.T, s *BoltStore) map[string]string {
	t.Helper()
	got := map[string]string{}
	for rec, err := range s.Scan(t.Context(), Query{Expired: true}) {
		require.NoError(t, err)
		got[rec.Key.ID] = rec.State.String() + " " + string(rec.Value)
	}
	return got
}

// TestNthCommitFailsInDo injects the same under the guard: the function runs
// only on a durable claim, its result reaches the caller even if it cannot be
// recorded, and after a restart it does not run a second time.
func TestNthCommitFailsInDo(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 2; n++ {
		for _, made := range []bool{false, true} {
			commits := 0
			path := faultPath(t)
			s := openFault(t, path, aroundCommits(func(commit func() error) error {
				if commits++; commits == n {
					if made {
						return errors.Join(commit(), errInjected)
					}
					return errInjected
				}
				return commit()
			}))
			g, err := New(s)
			require.NoError(t, err)
			runs := 0
			run := func(context.Context, *Attempt) (int, error) { runs++; return 7, nil }
			res, err := Do(t.Context(), g, faultKey("a"), nil, run)
			require.Equal(t, n, commits)
			require.ErrorIs(t, err, errInjected)
			require.Equal(t, n-1, runs)
			require.Equal(t, n == 2, errors.Is(err, ErrNotRecorded))
			require.Equal(t, 7*(n-1), res.Value)
			require.NoError(t, s.Close())

			g, err = New(openFault(t, path, BoltConfig{LockTimeout: -1}))
			require.NoError(t, err)
			_, err = Do(t.Context(), g, faultKey("a"), nil, run)
			if made != (n == 2) { // a claim is left, of an owner that is gone
				require.ErrorIs(t, err, ErrInterrupted)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, 1-b2i(n == 1 && made), runs)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
