package idemhttp_test

// What happens in the cases where implementations of idempotency keys are known
// to differ, and the test that shows it on a real server.
//
//	crash before the effect              interrupted, or what the policy says   TestCrashedService
//	crash after the effect               the same                               TestKilledService, TestCrashedService
//	record fails after success           response sent, no second run           TestNotRecorded, TestNotRecordedIsNotRunAgain
//	handler answers 5xx                  stored, or unknown                     TestStatusIsStored, TestServerErrorIsUnknownUnderRerun
//	handler panics                       interrupted, and the panic goes on     TestPanicIsInterruptedAndGoesOn, TestPanicUnderRerunRunsAgain
//	429, 425, 401, 403, 407, 408, 503    the key is free                        TestStatusReleasesTheKey
//	duplicate while the first runs       409, or waits if asked to              TestInProgress, TestOneRunForManyClients
//	other payload while the first runs   422                                    TestInProgress
//	other payload when it is done        422 that names what differs            TestMismatchNamesParts
//	tenants                              scope is required                      TestTenantsAreApart
//	Set-Cookie                           never stored                           TestReplayIsIdentical, TestNewRefuses
//	big request body                     spooled, then 413                      TestBodyReachesTheHandler, TestBodyTooLarge
//	response that is not held back       sent whole, no second run              TestResponseNotKept
//	streaming, hijacking                 the same                               TestFlushReachesTheClient, TestHijack
//	slow first worker after a takeover   cannot overwrite                       TestSlowWorkerCannotOverwrite
//	clock                                that of the store                      TestClockIsTheStores
//	long run                             the lease is renewed                   TestLeaseIsRenewedWhileTheHandlerRuns
//	client disconnects                   the handler goes on                    TestClientHangsUpAndRetries, TestGoneBeforeTheHandler
//	key missing                          400, or unprotected                    TestMissingKey

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/idemhttp"
)

// steeredStore is a store whose clock can be set ahead and whose writes over a
// record can be watched and refused.
type steeredStore struct {
	*idem.MemoryStore
	ahead  atomic.Int64
	onSwap func(idem.Record) error
}

func (s *steeredStore) Now() time.Time {
	return s.MemoryStore.Now().Add(time.Duration(s.ahead.Load()))
}

func (s *steeredStore) Swap(ctx context.Context, version uint64, rec idem.Record) (idem.Record, error) {
	if s.onSwap != nil {
		if err := s.onSwap(rec); err != nil {
			return idem.Record{}, err
		}
	}
	return s.MemoryStore.Swap(ctx, version, rec)
}

func steeredGuard(t *testing.T, policy idem.Policy) (*idem.Guard, *steeredStore) {
	t.Helper()
	store := &steeredStore{MemoryStore: idem.NewMemoryStore(idem.MemoryConfig{})}
	guard, err := idem.New(store, idem.WithPolicy(policy))
	require.NoError(t, err)
	return guard, store
}

func rerunPolicy() idem.Policy {
	p := idem.API
	p.OnInterrupted = idem.Rerun()
	return p
}

// gate returns a channel that open closes. Who defers open leaves no handler
// behind when a test fails.
func gate() (opened <-chan struct{}, open func()) {
	c := make(chan struct{})
	return c, sync.OnceFunc(func() { close(c) })
}

// postAside sends a request and does not wait for its answer.
func postAside(t *testing.T, server *httptest.Server, key, body string) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		defer close(answers)
		if a, err := try(t.Context(), server, http.MethodPost, "/", key, strings.NewReader(body)); err == nil {
			answers <- a
		}
	}()
	return answers
}

// TestNotRecordedIsNotRunAgain: the client of a request whose end could not be
// written has its response. A repeat finds the attempt at work, and interrupted
// when its lease is over.
func TestNotRecordedIsNotRunAgain(t *testing.T) {
	t.Parallel()
	guard, store := steeredGuard(t, idem.API)
	store.onSwap = func(idem.Record) error { return idem.ErrFull }
	var runs atomic.Int64
	server := serve(t, guard, func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		_, _ = io.WriteString(w, "receipt")
	})
	first := post(t, server, "/", "k", "{}")
	require.Equal(t, "receipt", first.body)
	require.Equal(t, idemhttp.StatusExecuted, first.said())
	require.Empty(t, first.header.Get(idemhttp.HeaderExpires))

	require.Equal(t, idemhttp.StatusInProgress, post(t, server, "/", "k", "{}").said())
	store.ahead.Store(int64(idem.API.Lease))
	again := post(t, server, "/", "k", "{}")
	require.Equal(t, http.StatusConflict, again.status)
	require.Equal(t, idemhttp.ProblemInterrupted, again.problem(t).Type)
	require.EqualValues(t, 1, runs.Load())
}

// TestSlowWorkerCannotOverwrite: a worker that comes back after another one has
// taken its key over still answers its own client, and changes nothing.
func TestSlowWorkerCannotOverwrite(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, start func(testing.TB, http.Handler) *httptest.Server) {
		guard, store := steeredGuard(t, rerunPolicy())
		entered := make(chan struct{})
		released, release := gate()
		defer release()
		versions := make(chan uint64, 2)
		server := start(t, protect(t, guard, func(w http.ResponseWriter, r *http.Request) {
			attempt, _ := idem.AttemptFrom(r.Context())
			versions <- attempt.Version()
			if attempt.Number() == 1 {
				close(entered)
				<-released
			}
			fmt.Fprintf(w, "attempt %d", attempt.Number())
		}))
		slow := postAside(t, server, "k", "{}")
		<-entered
		require.Equal(t, idemhttp.StatusInProgress, post(t, server, "/", "k", "{}").said())
		store.ahead.Store(int64(idem.API.Lease))
		quick := post(t, server, "/", "k", "{}")
		require.Equal(t, "attempt 2", quick.body)
		require.Equal(t, idemhttp.StatusExecuted, quick.said())
		before, err := store.Get(t.Context(), idem.Key{Scope: "test", ID: "k"})
		require.NoError(t, err)

		release()
		late := <-slow
		require.Equal(t, "attempt 1", late.body)
		require.Empty(t, late.header.Get(idemhttp.HeaderExpires), "no record answers for it")
		after, err := store.Get(t.Context(), idem.Key{Scope: "test", ID: "k"})
		require.NoError(t, err)
		require.Equal(t, before, after)
		again := post(t, server, "/", "k", "{}")
		require.Equal(t, "attempt 2", again.body)
		require.Equal(t, idemhttp.StatusReplayed, again.said())
		require.Less(t, <-versions, <-versions, "what the slow one does elsewhere can be refused there")
		require.EqualValues(t, 1, guard.Counters().LeaseLost)
	})
}

// TestClockIsTheStores: a store that is ahead of this machine's clock, because
// that was set back, decides what is over and what clients are told.
func TestClockIsTheStores(t *testing.T) {
	t.Parallel()
	const ahead = 3 * time.Hour
	guard, store := steeredGuard(t, idem.API)
	store.ahead.Store(int64(ahead))
	entered := make(chan struct{})
	released, release := gate()
	defer release()
	var runs atomic.Int64
	server := serve(t, guard, func(http.ResponseWriter, *http.Request) {
		if runs.Add(1) > 1 { // the first one lets the middleware know how long it takes
			close(entered)
			<-released
		}
	})
	for range 2 { // executed and replayed
		a := post(t, server, "/", "first", "{}")
		expires, err := http.ParseTime(a.header.Get(idemhttp.HeaderExpires))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(ahead+idem.API.Retention), expires, time.Minute)
	}
	running := postAside(t, server, "second", "{}")
	<-entered
	a := post(t, server, "/", "second", "{}")
	release()
	require.Equal(t, idemhttp.StatusInProgress, a.said())
	require.Equal(t, "1", a.header.Get("Retry-After"), "not the hours between the clocks")
	require.Equal(t, idemhttp.StatusExecuted, (<-running).said())
}

// TestLeaseIsRenewedWhileTheHandlerRuns: a run that is longer than its lease keeps
// its key.
func TestLeaseIsRenewedWhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	policy := rerunPolicy()
	policy.Lease = idem.MinLease
	guard, store := steeredGuard(t, policy)
	renewed := make(chan struct{}, 100)
	store.onSwap = func(rec idem.Record) error {
		if rec.State == idem.Processing {
			renewed <- struct{}{}
		}
		return nil
	}
	var runs atomic.Int64
	released, release := gate()
	defer release()
	server := serve(t, guard, func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		<-released
		fmt.Fprint(w, r.Context().Err())
	})
	began := time.Now()
	first := postAside(t, server, "k", "{}")
	for time.Since(began) < policy.Lease+policy.Lease/3 {
		<-renewed
		require.Equal(t, idemhttp.StatusInProgress, post(t, server, "/", "k", "{}").said())
	}
	release()
	require.Equal(t, "<nil>", (<-first).body)
	require.Equal(t, idemhttp.StatusReplayed, post(t, server, "/", "k", "{}").said())
	require.EqualValues(t, 1, runs.Load())
}
