package idem_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
)

// eventLog is an observer.
type eventLog struct {
	mu     sync.Mutex
	events []idem.Event
}

func (l *eventLog) observe(e idem.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *eventLog) take() []idem.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	return events
}

func TestEventNames(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for i, k := range idem.EventKinds() {
		require.Equal(t, idem.EventKind(i+1), k)
		require.Regexp(t, "^[a-z-]+$", k.String())
		require.False(t, seen[k.String()])
		seen[k.String()] = true
	}
	require.Len(t, seen, 12)
	require.Equal(t, "event(0)", idem.EventKind(0).String())
	require.Equal(t, "event(13)", idem.EventKind(13).String())
}

// TestEveryCallIsOneEvent: one row per way a call can end, and the only event
// that it makes.
func TestEveryCallIsOneEvent(t *testing.T) {
	t.Parallel()
	plain := errors.New("no such customer")
	tests := []struct {
		name  string
		found idem.State // 0: no record
		store func(*hookStore)
		input any
		fn    error
		want  idem.Event // Version, Err and Fingerprint are checked by hand
		isErr error
	}{
		{"executed", 0, nil, pay, nil, idem.Event{Kind: idem.EventExecuted, Attempt: 1, Ran: time.Second}, nil},
		{"released", 0, nil, pay, plain, idem.Event{Kind: idem.EventReleased, Attempt: 1, Ran: time.Second}, plain},
		{"failed", 0, nil, pay, idem.Permanent(plain), idem.Event{Kind: idem.EventFailed, Attempt: 1, Ran: time.Second}, plain},
		{"interrupted", 0, nil, pay, idem.Unknown(plain), idem.Event{Kind: idem.EventInterrupted, Attempt: 1, Ran: time.Second}, idem.ErrInterrupted},
		{"replayed", idem.Completed, nil, pay, nil, idem.Event{Kind: idem.EventReplayed, Attempt: 1}, nil},
		{"failure replayed", idem.Failed, nil, pay, nil, idem.Event{Kind: idem.EventReplayed, Attempt: 1}, idem.ErrFailed},
		{"in progress", idem.Processing, nil, pay, nil, idem.Event{Kind: idem.EventInProgress, Attempt: 1}, idem.ErrInProgress},
		{"interruption found", idem.Interrupted, nil, pay, nil, idem.Event{Kind: idem.EventInterrupted, Attempt: 1}, idem.ErrInterrupted},
		{"mismatch", idem.Completed, nil, payment{1, "USD"}, nil, idem.Event{Kind: idem.EventMismatch, Attempt: 1, Parts: []string{"amount", "currency"}}, idem.ErrMismatch},
		{"store fails before", 0, func(s *hookStore) {
			s.onGet = func(context.Context, idem.Key) (idem.Record, error) { return idem.Record{}, errDisk }
		}, pay, nil, idem.Event{Kind: idem.EventStoreError}, errDisk},
		{"store fails after", 0, func(s *hookStore) {
			s.onSwap = func(context.Context, uint64, idem.Record) (idem.Record, error) { return idem.Record{}, errDisk }
		}, pay, nil, idem.Event{Kind: idem.EventStoreError, Attempt: 1, Ran: time.Second}, idem.ErrNotRecorded},
		{"taken over", 0, func(s *hookStore) {
			s.onSwap = func(context.Context, uint64, idem.Record) (idem.Record, error) {
				return idem.Record{}, idem.ErrConflict
			}
		}, pay, nil, idem.Event{Kind: idem.EventLeaseLost, Attempt: 1, Ran: time.Second}, idem.ErrLeaseLost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, log := newHookStore(), &eventLog{}
				if tt.found != 0 {
					seed(t, store.MemoryStore, tt.found, time.Minute, time.Hour)
				}
				if tt.store != nil {
					tt.store(store)
				}
				g := guardOn(t, store, idem.WithObserver(log.observe))
				_, err := idem.Do(t.Context(), g, order, tt.input, sleeps(time.Second, "value", tt.fn),
					idem.WithTraceID("trace-1"), idem.WithKind("pay"))
				events := log.take()
				require.Len(t, events, 1)
				got := events[0]
				require.Equal(t, tt.want.Attempt > 0, got.Version > 0)
				if tt.isErr == nil {
					require.NoError(t, got.Err)
				} else {
					require.ErrorIs(t, got.Err, tt.isErr)
					require.ErrorIs(t, err, tt.isErr)
				}
				require.Equal(t, tt.want.Kind == idem.EventMismatch, !got.Fingerprint.IsZero())
				got.Version, got.Err, got.Fingerprint = 0, nil, idem.Fingerprint{}
				tt.want.Key, tt.want.TraceID, tt.want.RecordKind = order, "trace-1", "pay"
				require.Equal(t, tt.want, got)
			})
		})
	}
}

func TestOtherEvents(t *testing.T) {
	t.Parallel()
	t.Run("rejected", func(t *testing.T) {
		t.Parallel()
		log := &eventLog{}
		g := memoryGuard(t, idem.WithObserver(log.observe))
		_, err := idem.Do(t.Context(), g, idem.Key{Scope: "s"}, nil, mustNotRun[int](t))
		require.Equal(t, []idem.Event{{Kind: idem.EventRejected, Reason: idem.RejectMissing, Err: err}}, log.take())
	})
	t.Run("lease lost while running", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			log, store := &eventLog{}, newHookStore()
			g := guardOn(t, store, idem.WithObserver(log.observe))
			store.onSwap = func(context.Context, uint64, idem.Record) (idem.Record, error) {
				return idem.Record{}, idem.ErrConflict
			}
			_, err := idem.Do(t.Context(), g, order, nil, sleeps(time.Minute, 1, nil), idem.WithTraceID("trace-1"))
			require.ErrorIs(t, err, idem.ErrLeaseLost)
			events := log.take()
			require.Len(t, events, 1, "reported when it happened, not again at the end")
			require.ErrorIs(t, events[0].Err, idem.ErrLeaseLost)
			events[0].Err = nil
			require.Equal(t, idem.Event{
				Kind: idem.EventLeaseLost, Key: order, Version: 1, Attempt: 1, TraceID: "trace-1", RecordKind: "func",
			}, events[0])
		})
	})
	t.Run("waited", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			log := &eventLog{}
			g := memoryGuard(t, idem.WithObserver(log.observe))
			go func() { _, _ = idem.Do(context.Background(), g, order, nil, sleeps(10*time.Second, 1, nil)) }()
			synctest.Wait()
			_, err := idem.Do(t.Context(), g, order, nil, mustNotRun[int](t), idem.WithWait(time.Minute))
			require.NoError(t, err)
			synctest.Wait() // who waits may be told before who ran has counted it
			events := log.take()
			slices.SortFunc(events, func(a, b idem.Event) int { return cmp.Compare(a.Kind, b.Kind) })
			require.Len(t, events, 2)
			require.Equal(t, idem.EventExecuted, events[0].Kind)
			require.Equal(t, idem.EventReplayed, events[1].Kind)
			require.Zero(t, events[0].Waited)
			require.Equal(t, 10*time.Second, events[1].Waited)
			require.Zero(t, events[1].Ran)
		})
	})
	t.Run("waited in vain", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			log := &eventLog{}
			g := memoryGuard(t, idem.WithObserver(log.observe))
			go func() { _, _ = idem.Do(context.Background(), g, order, nil, sleeps(time.Minute, 1, nil)) }()
			synctest.Wait()
			_, err := idem.Do(t.Context(), g, order, nil, mustNotRun[int](t), idem.WithWait(10*time.Second))
			require.ErrorIs(t, err, idem.ErrInProgress)
			events := log.take()
			require.Len(t, events, 1)
			require.Equal(t, idem.EventInProgress, events[0].Kind)
			require.Equal(t, 10*time.Second, events[0].Waited)
			require.NoError(t, g.Close())
		})
	})
	t.Run("ended caller is nobody's failure", func(t *testing.T) {
		t.Parallel()
		log := &eventLog{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := idem.Do(ctx, memoryGuard(t, idem.WithObserver(log.observe)), order, nil, mustNotRun[int](t))
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, log.take())
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			log := &eventLog{}
			g, err := idem.Open(filepath.Join(t.TempDir(), "idem.db"), idem.WithObserver(log.observe),
				idem.WithJanitor(idem.JanitorConfig{Interval: time.Hour}))
			require.NoError(t, err)
			for i := range 3 {
				_, err := idem.Do(t.Context(), g, idem.Key{Scope: "s", ID: fmt.Sprint(i)}, nil, returns(1, nil))
				require.NoError(t, err)
			}
			log.take()
			time.Sleep(26 * time.Hour)
			synctest.Wait()
			require.Equal(t, []idem.Event{{Kind: idem.EventExpired, Count: 3}}, log.take())
			require.EqualValues(t, 3, g.Counters().Expired)
			require.NoError(t, g.Close())
		})
	})
}

// recordingStore keeps events as a store that shows them to tools does.
type recordingStore struct {
	*idem.MemoryStore
	eventLog
}

func (s *recordingStore) RecordEvent(e idem.Event) { s.observe(e) }

func TestObserverAndRecorderSeeTheSame(t *testing.T) {
	t.Parallel()
	store, log := &recordingStore{MemoryStore: idem.NewMemoryStore(idem.MemoryConfig{})}, &eventLog{}
	g := guardOn(t, store, idem.WithObserver(log.observe))
	for _, input := range []int{1, 1, 2} {
		_, _ = idem.Do(t.Context(), g, order, input, returns(1, nil))
	}
	events := log.take()
	require.Len(t, events, 3)
	require.Equal(t, events, store.take())
}
