package idemhttp_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// intentStore opens the store of one kind again and again, as runs of a command
// do. The store of the last opening is closed first.
type intentStore struct {
	name string
	open func(t *testing.T, path string) idem.Store
}

func intentStores() []intentStore {
	return []intentStore{
		{"bolt", func(t *testing.T, path string) idem.Store {
			s, err := idem.OpenBoltStore(t.Context(), path, idem.BoltConfig{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		}},
		{"transient", func(t *testing.T, path string) idem.Store {
			s, err := idem.OpenTransient(t.Context(), path, idem.BoltConfig{LockTimeout: time.Minute})
			require.NoError(t, err)
			return s
		}},
		{"memory", func(t *testing.T, _ string) idem.Store {
			s := idem.NewMemoryStore(idem.MemoryConfig{})
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		}},
	}
}

func newIntents(t *testing.T, store idem.Store, scope string, opts ...idemhttp.IntentOption) *idemhttp.Intents {
	t.Helper()
	s, err := idemhttp.NewIntents(store, scope, opts...)
	require.NoError(t, err)
	return s
}

func begin(t *testing.T, s *idemhttp.Intents, name string) idemhttp.Intent {
	t.Helper()
	in, err := s.Begin(t.Context(), name)
	require.NoError(t, err)
	return in
}

func TestIntent(t *testing.T) {
	t.Parallel()
	for _, store := range intentStores() {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			opened := store.open(t, filepath.Join(t.TempDir(), "idem.db"))
			intents := newIntents(t, opened, "billing")
			first := begin(t, intents, "invoice 1")
			require.Regexp(t, quotedV4, `"`+first.Key+`"`)
			require.Equal(t, "invoice 1", first.Name)
			require.Equal(t, first.Key, begin(t, intents, "invoice 1").Key)
			require.NotEqual(t, first.Key, begin(t, intents, "invoice 2").Key)
			require.NotEqual(t, first.Key, begin(t, newIntents(t, opened, "other"), "invoice 1").Key)

			require.NoError(t, first.Done(t.Context()))
			require.NoError(t, first.Done(t.Context()), "a second time")
			second := begin(t, intents, "invoice 1")
			require.NotEqual(t, first.Key, second.Key)
			require.NoError(t, first.Done(t.Context()), "late")
			require.Equal(t, second.Key, begin(t, intents, "invoice 1").Key)
		})
	}
}

// TestIntentAfterReopening is a command that ended without its intent being
// done, as after a crash.
func TestIntentAfterReopening(t *testing.T) {
	t.Parallel()
	for _, store := range intentStores()[:2] {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "idem.db")
			var keys []string
			for run := range 3 {
				t.Run(fmt.Sprint("run ", run), func(t *testing.T) {
					in := begin(t, newIntents(t, store.open(t, path), "billing"), "invoice 1")
					keys = append(keys, in.Key)
					if run == 1 {
						require.NoError(t, in.Done(t.Context()))
					}
				})
			}
			require.Equal(t, keys[0], keys[1])
			require.NotEqual(t, keys[1], keys[2])
		})
	}
}

func TestIntentChildKey(t *testing.T) {
	t.Parallel()
	intents := newIntents(t, idem.NewMemoryStore(idem.MemoryConfig{}), "billing")
	a, b := begin(t, intents, "a"), begin(t, intents, "b")
	require.Equal(t, a.ChildKey("charge"), begin(t, intents, "a").ChildKey("charge"))
	require.NotEqual(t, a.ChildKey("charge"), a.ChildKey("mail"))
	require.NotEqual(t, a.ChildKey("charge"), b.ChildKey("charge"))
	require.NotEqual(t, a.Key, a.ChildKey(""))
	require.Regexp(t, quotedV8, `"`+a.ChildKey("charge")+`"`)
}

// TestIntentRetention: an intent that is tried again is kept, and one handle
// ends it however often its retention was extended.
func TestIntentRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const retention = 10 * time.Hour
		intents := newIntents(t, idem.NewMemoryStore(idem.MemoryConfig{}), "billing", idemhttp.WithIntentRetention(retention))
		first := begin(t, intents, "a")
		for range 3 {
			time.Sleep(retention * 6 / 10)
			require.Equal(t, first.Key, begin(t, intents, "a").Key)
		}
		time.Sleep(retention / 2) // begun so late that it was extended
		require.Equal(t, first.Key, begin(t, intents, "a").Key)
		require.NoError(t, first.Done(t.Context()))
		second := begin(t, intents, "a")
		require.NotEqual(t, first.Key, second.Key)
		time.Sleep(retention)
		require.NotEqual(t, second.Key, begin(t, intents, "a").Key)
	})
}

// overtaken is a store in which something else happens just before a Swap.
type overtaken struct {
	*idem.MemoryStore
	before func()
}

func (s *overtaken) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	s.before()
	return s.MemoryStore.Swap(ctx, version, rec)
}

// TestIntentDoneWhileExtended: a Begin that finds an intent which is then done
// opens the next one.
func TestIntentDoneWhileExtended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &overtaken{MemoryStore: idem.NewMemoryStore(idem.MemoryConfig{})}
		intents := newIntents(t, store, "billing", idemhttp.WithIntentRetention(time.Hour))
		first := begin(t, intents, "a")
		var err error
		store.before = func() { err = first.Done(t.Context()) }
		time.Sleep(40 * time.Minute)
		second := begin(t, intents, "a")
		require.NoError(t, err)
		require.NotEqual(t, first.Key, second.Key)
		require.Equal(t, second.Key, begin(t, intents, "a").Key)
	})
}

func TestNewIntentsRefuses(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	tests := []struct {
		name      string
		scope     string
		retention time.Duration
		want      error
	}{
		{"no scope", "", time.Hour, idem.ErrInvalidKey},
		{"bad scope", "a/b", time.Hour, idem.ErrInvalidKey},
		{"no retention", "billing", 0, idem.ErrInvalidPolicy},
		{"endless retention", "billing", idem.MaxRetention + 1, idem.ErrInvalidPolicy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := idemhttp.NewIntents(store, tt.scope, idemhttp.WithIntentRetention(tt.retention))
			require.ErrorIs(t, err, tt.want)
		})
	}
}

func TestBeginRefuses(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	intents := newIntents(t, store, "billing")
	for _, name := range []string{"", "a\nb", strings.Repeat("n", 256)} {
		in, err := intents.Begin(t.Context(), name)
		require.ErrorIs(t, err, idem.ErrInvalidKey)
		require.Zero(t, in)
	}
	_, err := store.Create(t.Context(), idem.Record{
		Key: idem.Key{Scope: "billing", ID: "taken"}, State: idem.Completed, Kind: "func", ExpiresAt: store.Now().Add(time.Hour),
	})
	require.NoError(t, err)
	in, err := intents.Begin(t.Context(), "taken")
	require.ErrorContains(t, err, "not an open intent")
	require.Zero(t, in)
}

// TestIntentStoreFails: no key without a stored one, and the error is the store's.
func TestIntentStoreFails(t *testing.T) {
	t.Parallel()
	store := idem.NewMemoryStore(idem.MemoryConfig{})
	intents := newIntents(t, store, "billing")
	in := begin(t, intents, "a")
	require.NoError(t, store.Close())
	require.ErrorIs(t, in.Done(t.Context()), idem.ErrClosed)
	in, err := intents.Begin(t.Context(), "a")
	require.ErrorIs(t, err, idem.ErrClosed)
	require.Zero(t, in)
}

// intentHistory checks that no key is handed out beside an open one, and none
// after its intent was done.
type intentHistory struct {
	mu     sync.Mutex
	begun  map[string]bool // keys handed out
	ending map[string]bool // keys whose Done was called
	ended  map[string]bool // keys whose Done returned
	wrong  []string
}

// begin calls fn, which begins the intent, and judges what it returns.
func (h *intentHistory) begin(fn func() (idemhttp.Intent, error)) (idemhttp.Intent, error) {
	var open, ended []string
	h.mu.Lock()
	for key := range h.begun {
		switch {
		case h.ended[key]:
			ended = append(ended, key)
		case !h.ending[key]:
			open = append(open, key)
		}
	}
	h.mu.Unlock()
	in, err := fn()
	if err != nil {
		return in, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range open {
		if key != in.Key && !h.ending[key] {
			h.wrong = append(h.wrong, fmt.Sprintf("%s while %s was open", in.Key, key))
		}
	}
	for _, key := range ended {
		if key == in.Key {
			h.wrong = append(h.wrong, key+" after it was done")
		}
	}
	h.begun[in.Key] = true
	return in, nil
}

func (h *intentHistory) mark(set map[string]bool, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set[key] = true
}

func TestIntentConcurrent(t *testing.T) {
	t.Parallel()
	for _, store := range intentStores() {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			opened := store.open(t, filepath.Join(t.TempDir(), "idem.db"))
			intents := newIntents(t, opened, "billing", idemhttp.WithIntentRetention(time.Hour))
			h := &intentHistory{begun: map[string]bool{}, ending: map[string]bool{}, ended: map[string]bool{}}
			errs := make([]error, 8)
			var wg sync.WaitGroup
			for worker := range errs {
				wg.Go(func() {
					for round := 0; round < 12 && errs[worker] == nil; round++ {
						in, err := h.begin(func() (idemhttp.Intent, error) { return intents.Begin(t.Context(), "one") })
						if err == nil && (worker+round)%3 == 0 {
							h.mark(h.ending, in.Key)
							err = in.Done(t.Context())
							h.mark(h.ended, in.Key)
						}
						errs[worker] = err
					}
				})
			}
			wg.Wait()
			for _, err := range errs {
				require.NoError(t, err)
			}
			require.Empty(t, h.wrong)
			require.Greater(t, len(h.begun), 1)
		})
	}
}
