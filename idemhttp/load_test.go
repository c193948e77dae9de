package idemhttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idembolt/idem/idemhttp"
)

const (
	// inFlightBytes is what a request in flight may take of heap and stacks, with
	// the client's half of it, which is in the same process.
	inFlightBytes = 64 << 10
	// leftBytes is what may be left of each when all are answered: the store's
	// cache of records and buffers kept for reuse, not what belonged to one.
	leftBytes = 8 << 10
)

// inFlight is how many requests the load tests hold open. The race detector
// allows 8128 goroutines, and each request takes three of both sides.
func inFlight() int {
	switch {
	case raceDetector:
		return 1000
	case testing.Short():
		return 2000
	}
	return 10_000
}

// load is a server and clients for very many requests at once. They speak HTTP/2
// without TLS: as streams of a few connections they need few descriptors, where
// HTTP/1.1 would need two for each request in this one process.
type load struct {
	server  *http.Server
	served  chan error
	clients [10]*http.Client // of one connection each
	url     string
}

func startLoad(t *testing.T, handler http.Handler) *load {
	t.Helper()
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("POST /charges", handler)
	mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	l := &load{
		server: &http.Server{Handler: mux, Protocols: &h2c, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 2000}},
		served: make(chan error, 1),
		url:    "http://" + listener.Addr().String(),
	}
	go func() { l.served <- l.server.Serve(listener) }()
	for i := range l.clients {
		l.clients[i] = &http.Client{Transport: &http.Transport{Protocols: &h2c}}
		res, err := l.clients[i].Get(l.url) // else each request opens a connection until one is there
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
	return l
}

func (l *load) stop(t *testing.T) {
	t.Helper()
	for _, c := range l.clients {
		c.CloseIdleConnections()
	}
	require.NoError(t, l.server.Close())
	require.ErrorIs(t, <-l.served, http.ErrServerClosed)
}

// post sends the i-th request.
func (l *load) post(t *testing.T, i int, key, body string, headers ...string) (answer, error) {
	client := l.clients[i%len(l.clients)]
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url+"/charges", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.ProtoMajor, res.Header, res.Trailer, string(content)}, err
}

// memoryUsed is what lives in the heap and on stacks.
func memoryUsed() int64 {
	runtime.GC()
	runtime.GC() // the second empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// requireIdle waits until the goroutines are as few as before.
func requireIdle(t *testing.T, goroutines int) {
	t.Helper()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+1 }, // it runs in one itself
		10*time.Second, time.Millisecond, stacks{})
}

// TestManyRequestsInFlight cannot run in parallel: it measures memory and counts
// goroutines.
func TestManyRequestsInFlight(t *testing.T) {
	n := inFlight()
	guard := boltGuard(t)
	goroutines, before := runtime.NumGoroutine(), memoryUsed()
	released, release := gate()
	defer release()
	var entered sync.WaitGroup
	entered.Add(n)
	l := startLoad(t, protect(t, guard, func(w http.ResponseWriter, r *http.Request) {
		entered.Done()
		<-released
		_, _ = io.Copy(w, r.Body)
	}))
	var wrong atomic.Pointer[string]
	var clients sync.WaitGroup
	for i := range n {
		clients.Go(func() {
			body := fmt.Sprintf(`{"order":%d}`, i)
			a, err := l.post(t, i, fmt.Sprintf("key-%d", i), body)
			if err != nil || a.body != body || a.said() != idemhttp.StatusExecuted {
				says := fmt.Sprintf("%d: %v: %d %s", i, err, a.status, a.body)
				wrong.Store(&says)
			}
		})
	}
	entered.Wait()
	each := (memoryUsed() - before) / int64(n)
	release()
	clients.Wait()
	require.Nil(t, wrong.Load())
	l.stop(t)
	requireIdle(t, goroutines)
	left := (memoryUsed() - before) / int64(n)
	t.Logf("%d in flight: %d bytes each, %d when they are answered", n, each, left)
	require.Less(t, each, int64(inFlightBytes))
	require.Less(t, left, int64(leftBytes))
	require.EqualValues(t, n, guard.Counters().Executed)
}

// TestManyWaitForOne: any number of clients may wait for one run, and each gets
// its bytes. It cannot run in parallel either.
func TestManyWaitForOne(t *testing.T) {
	n := inFlight()
	guard := boltGuard(t)
	receipt := bytes.Repeat([]byte("receipt "), 512)
	goroutines, before := runtime.NumGoroutine(), memoryUsed()
	released, release := gate()
	defer release()
	var runs atomic.Int64
	protected := protect(t, guard, func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		<-released
		_, _ = w.Write(receipt)
	}, idemhttp.MaxWait(time.Minute))
	var entered sync.WaitGroup
	entered.Add(n)
	l := startLoad(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered.Done()
		protected.ServeHTTP(w, r)
	}))
	said := make(chan string, n)
	var clients sync.WaitGroup
	for i := range n {
		clients.Go(func() {
			a, err := l.post(t, i, "k", `{"order":1}`, "Prefer", "wait=60")
			if err != nil || a.body != string(receipt) {
				said <- fmt.Sprintf("%v: %d %s", err, a.status, a.body)
				return
			}
			said <- string(a.said())
		})
	}
	entered.Wait()
	each := (memoryUsed() - before) / int64(n)
	release()
	clients.Wait()
	close(said)
	count := make(map[string]int)
	for s := range said {
		count[s]++
	}
	require.Equal(t, map[string]int{string(idemhttp.StatusExecuted): 1, string(idemhttp.StatusReplayed): n - 1}, count)
	require.EqualValues(t, 1, runs.Load())
	l.stop(t)
	requireIdle(t, goroutines)
	left := (memoryUsed() - before) / int64(n)
	t.Logf("%d waited: %d bytes each, %d when they are answered", n, each, left)
	require.Less(t, each, int64(inFlightBytes))
	require.Less(t, left, int64(leftBytes))
}
