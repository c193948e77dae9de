//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	customers    = 6
	initialStock = 3_000
)

// TestKilled kills the shop at random points while customers order, pay, cancel and
// try again. Then the last shop ends what was begun, and all is counted.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	l := &load{sent: make(chan struct{}, 1)}
	stop, ended := make(chan struct{}), make(chan error, customers)
	for n := range customers {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		go func() { ended <- l.customer(t.Context(), n, own, stop) }()
	}
	rounds := kills
	if testing.Short() {
		rounds = min(kills, 15)
	}
	began := time.Now()
	for range rounds {
		s := launch(t, dir, "--stock", fmt.Sprint(initialStock))
		if random.IntN(8) == 0 { // while it recovers from the kill before
			<-time.After(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
		} else {
			l.moveTo(s.listening(t))
			l.wait(t, random, ended)
		}
		s.kill(t)
	}
	t.Logf("%d kills in %s", rounds, time.Since(began).Round(time.Millisecond))

	s := launch(t, dir, "--stock", fmt.Sprint(initialStock))
	l.moveTo(s.listening(t))
	close(stop)
	for range customers {
		require.NoError(t, <-ended)
	}
	drain(t, l.url)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, s.cmd.Wait())
	require.NoFileExists(t, filepath.Join(dir, "shop.db-wal"))

	c := countAll(t, dir)
	c.orders(t, l.told)
	c.stock(t)
	c.events(t)
	c.money(t)
	tellStory(t, dir, l.told)
}

// wait lets a random number of requests begin, and then some microseconds pass, so
// that the kill comes anywhere in their work.
func (l *load) wait(t *testing.T, random *rand.Rand, ended <-chan error) {
	t.Helper()
	for range 1 + random.IntN(30) {
		select {
		case <-l.sent:
		case err := <-ended:
			require.NoError(t, err)
			require.FailNow(t, "a customer ended")
		}
	}
	<-time.After(time.Duration(random.Int64N(int64(4 * time.Millisecond))))
}

// drain waits until every event was published.
func drain(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l := &load{url: url}
	for {
		answer, err := l.ask(ctx, "GET", "/outbox", "", nil)
		require.NoError(t, err)
		if strings.HasPrefix(answer.body, `{"Depth":0,`) {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}
