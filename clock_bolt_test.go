package idem

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// openStepped opens the file on a machine whose wall clock is off by step.
func openStepped(t *testing.T, path string, step time.Duration) *BoltStore {
	t.Helper()
	s, err := OpenBoltStore(t.Context(), path, BoltConfig{wall: func() time.Time { return time.Now().Add(step) }})
	require.NoError(t, err)
	return s
}

// keep stores a finished record and returns its key.
func keep(t *testing.T, s Store, id string, left time.Duration) Key {
	t.Helper()
	key := Key{Scope: "clock", ID: id}
	_, err := s.Create(t.Context(), Record{Key: key, State: Completed, ExpiresAt: s.(Clock).Now().Add(left)})
	require.NoError(t, err)
	return key
}

func isThere(t *testing.T, s Store, key Key) bool {
	t.Helper()
	_, err := s.Get(t.Context(), key)
	if err != nil {
		require.ErrorIs(t, err, ErrNotFound)
	}
	return err == nil
}

func TestClockStepsBetweenOpens(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	since1970 := time.Duration(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	tests := []struct {
		name  string
		step  time.Duration
		moves time.Duration // of the store's time
	}{
		{"none", 0, 0},
		{"back an hour", -time.Hour, 0},
		{"back to 1970", -since1970, 0},
		{"ahead a minute", time.Minute, time.Minute},
		{"ahead ten years", 10 * year, 10 * year},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "idem.db")
				s := openStepped(t, path, 0)
				key := keep(t, s, "k", 24*time.Hour)
				before := s.Now()
				require.NoError(t, s.Close())

				s = openStepped(t, path, tt.step)
				require.WithinDuration(t, before.Add(tt.moves), s.Now(), time.Microsecond)
				require.True(t, isThere(t, s, key), "no step expires it at once: it may have run out in a downtime")
				keep(t, s, "k2", time.Hour)
				stepped := s.Now()
				time.Sleep(time.Minute)
				require.Equal(t, stepped.Add(time.Minute), s.Now())
				require.NoError(t, s.Close())

				s = openStepped(t, path, 0)
				require.False(t, s.Now().Before(stepped), "a wrong step is never taken back")
				require.NoError(t, s.Close())
			})
		})
	}
}

func TestRestartsDuringGraceDoNotUseItUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "idem.db")
		s := openStepped(t, path, 0)
		served := keep(t, s, "ran-out-while-served", time.Minute)
		down := keep(t, s, "ran-out-while-down", 3*time.Hour)
		time.Sleep(time.Hour)
		keep(t, s, "something-is-written", time.Minute)
		require.NoError(t, s.Close())
		time.Sleep(5 * time.Hour)

		for i := range 5 { // each run is shorter than the grace, and writes
			s = openStepped(t, path, 0)
			require.True(t, isThere(t, s, down))
			require.False(t, isThere(t, s, served))
			time.Sleep(10 * time.Minute)
			keep(t, s, fmt.Sprint("run-", i), time.Hour)
			n, err := s.Expire(t.Context(), 100)
			require.NoError(t, err)
			require.Equal(t, i == 0, n > 0, "what ran out while served goes in the first round")
			require.True(t, isThere(t, s, down))
			require.NoError(t, s.Close())
			time.Sleep(time.Minute)
		}

		s = openStepped(t, path, 0)
		time.Sleep(15*time.Minute - time.Microsecond)
		require.True(t, isThere(t, s, down))
		time.Sleep(time.Microsecond)
		require.False(t, isThere(t, s, down))
		require.NoError(t, s.Close())
	})
}

func TestRetentionEndsOnTheDot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 700
		s := openStepped(t, filepath.Join(t.TempDir(), "idem.db"), 0)
		var writing sync.WaitGroup
		for i := range n {
			writing.Go(func() { keep(t, s, fmt.Sprintf("%04d", i), 24*time.Hour) })
		}
		writing.Wait()
		time.Sleep(24*time.Hour - time.Microsecond)
		require.True(t, isThere(t, s, Key{"clock", "0000"}))
		removed, err := s.Expire(t.Context(), n)
		require.NoError(t, err)
		require.Zero(t, removed, "not a microsecond early")

		time.Sleep(time.Microsecond)
		require.False(t, isThere(t, s, Key{"clock", "0000"}))
		for _, want := range []int{256, 256, n - 512, 0} {
			removed, err = s.Expire(t.Context(), 256)
			require.NoError(t, err)
			require.Equal(t, want, removed)
		}
		info, err := s.Info(t.Context())
		require.NoError(t, err)
		require.Zero(t, info.Records)
		require.NoError(t, s.Close())
	})
}

// At the moment a record runs out its key is free exactly once, whoever removes
// the old record.
func TestExpiryRacesWithCreate(t *testing.T) {
	t.Parallel()
	stores := map[string]func(t *testing.T) Store{
		"memory": func(*testing.T) Store { return NewMemoryStore(MemoryConfig{}) },
		"bolt":   func(t *testing.T) Store { return openStepped(t, filepath.Join(t.TempDir(), "idem.db"), 0) },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t)
				key := keep(t, s, "k", time.Hour)
				var version uint64
				for range 30 {
					time.Sleep(time.Hour)
					winners := make(chan Record, 8)
					var racing sync.WaitGroup
					for i := range 8 {
						racing.Go(func() {
							if i%4 == 3 {
								if _, err := s.Expire(context.Background(), 10); err != nil {
									t.Errorf("Expire: %v", err)
								}
								return
							}
							rec, err := s.Create(context.Background(), Record{
								Key: key, State: Completed, Attempt: i, ExpiresAt: s.(Clock).Now().Add(time.Hour),
							})
							switch {
							case err == nil:
								winners <- rec
							case !errors.Is(err, ErrConflict):
								t.Errorf("Create: %v", err)
							}
						})
					}
					racing.Wait()
					require.Len(t, winners, 1)
					won := <-winners
					require.Greater(t, won.Version, version)
					version = won.Version
					now, err := s.Get(t.Context(), key)
					require.NoError(t, err)
					require.Equal(t, won, now)
				}
				require.NoError(t, s.(interface{ Close() error }).Close())
			})
		})
	}
}
