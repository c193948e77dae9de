package idemhttp

import (
	"sync"
	"time"
)

// maxRoutes bounds the memory of a pace: routes named by a callback may be as
// many as clients like.
const maxRoutes = 256

// pace keeps a moving average of how long the handler takes, by route.
type pace struct {
	mu     sync.Mutex
	routes map[string]time.Duration
}

func newPace() *pace { return &pace{routes: make(map[string]time.Duration)} }

// add takes a run into account: each weighs a quarter, so that a route whose
// behaviour changes is followed within a few requests.
func (p *pace) add(route string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	average, known := p.routes[route]
	switch {
	case known:
		p.routes[route] = average + (took-average)/4
	case len(p.routes) < maxRoutes:
		p.routes[route] = took
	}
}

// remaining estimates how much longer a run needs, at least a second. A run that
// is over the average, or the first of its route, gets the guard's guess. Elapsed
// may be negative: a store's clock can be ahead of this machine's.
func (p *pace) remaining(route string, elapsed, guess time.Duration) time.Duration {
	elapsed = max(elapsed, 0)
	p.mu.Lock()
	average, known := p.routes[route]
	p.mu.Unlock()
	if known && average > elapsed {
		guess = average - elapsed
	}
	return max(guess, time.Second)
}
