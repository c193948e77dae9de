package idemtest

import (
	"testing"
	"testing/synctest"

	"github.com/idembolt/idem"
)

// Option changes how a suite runs.
type Option func(*config)

type config struct {
	bubble       bool
	selfExpiring bool
}

// InBubble runs every check in a testing/synctest bubble of its own, where time
// is fake and a check that hangs fails at once. newStore is called inside the
// bubble, and every goroutine of the store must have ended after its cleanup.
// It suits stores in memory and in files, not those behind a network.
//
// A suite cannot be called from inside a bubble, because it has subtests.
func InBubble() Option { return func(c *config) { c.bubble = true } }

// SelfExpiring is for stores that remove expired records by themselves, as
// Redis does. The suite then does not ask to see expired records in a Scan, nor
// that Expire is the one to remove them.
func SelfExpiring() Option { return func(c *config) { c.selfExpiring = true } }

// Exercise certifies a store: it runs every contract of idem.Store as subtests,
// each on a fresh store from newStore, and returns when all have ended. What
// newStore must provide is said in the package documentation.
func Exercise(t *testing.T, newStore func(t *testing.T) idem.Store, opts ...Option) {
	t.Helper()
	c := newConfig(opts)
	c.run(t, contracts(), func(t *testing.T) *subject {
		store := newStore(t)
		return &subject{Store: store, current: func() idem.Store { return store }, selfExpiring: c.selfExpiring}
	})
}

func newConfig(opts []Option) config {
	var c config
	for _, o := range opts {
		o(&c)
	}
	return c
}

// topic groups checks under one name.
type topic struct {
	name   string
	checks []check
}

// check is one sentence of the contract. It has no subtests of its own, so that
// it can run in a bubble.
type check struct {
	name string
	// overlaps: its calls overlap each other, so that the store cannot be closed
	// and opened between them.
	overlaps bool
	// keepsExpired: it looks at records that have expired and are still there.
	keepsExpired bool
	run          func(t *testing.T, s *subject)
}

func contracts() []topic {
	return []topic{
		{"Create", createChecks()},
		{"Swap", swapChecks()},
		{"Delete", deleteChecks()},
		{"Get", getChecks()},
		{"Versions", versionChecks()},
		{"Keys", keyChecks()},
		{"Fields", fieldChecks()},
		{"Invalid", invalidChecks()},
		{"Values", valueChecks()},
		{"Slices", sliceChecks()},
		{"Scan", scanChecks()},
		{"Query", queryChecks()},
		{"Expire", expireChecks()},
		{"Context", contextChecks()},
		{"Concurrency", concurrencyChecks()},
		{"Waiter", waiterChecks()},
		{"Optional", optionalChecks()},
		{"Guard", guardChecks()},
	}
}

// run makes a subtest of every check. The topic's subtest ends when its checks
// have, so that whoever called the suite may clean up after it.
func (c config) run(t *testing.T, topics []topic, open func(t *testing.T) *subject) {
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			for _, check := range topic.checks {
				t.Run(check.name, func(t *testing.T) {
					t.Parallel()
					c.runOne(t, check, open)
				})
			}
		})
	}
}

func (c config) runOne(t *testing.T, one check, open func(t *testing.T) *subject) {
	if one.keepsExpired && c.selfExpiring {
		t.Skip("the store removes expired records by itself")
	}
	if !c.bubble {
		one.run(t, open(t))
		return
	}
	synctest.Test(t, func(t *testing.T) { one.run(t, open(t)) })
}
