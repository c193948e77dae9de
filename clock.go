package idem

import (
	"slices"
	"time"
)

// storeClock is the time of a store. It never goes back: it starts at the later
// of the wall clock and the highest time the store has written, and from there
// follows the monotonic clock, so a step of the wall clock in either direction
// cannot expire records early while the store is open.
//
// It also knows about downtime. Records that ran out while no service had the
// file open were of no use to clients that wanted to retry then; they stay until
// a service has been up for the grace period.
type storeClock struct {
	opened time.Time // carries the monotonic reading
	base   time.Time // the store's time at opened

	// downtimes are those whose grace is not over, oldest first. graceUntil is
	// when it will be; zero for a holder that is not a service.
	downtimes  []span
	graceUntil time.Time
	visitor    bool
}

// span is a stretch of time, its beginning excluded and its end included.
type span struct{ from, to time.Time }

func (s span) contains(t time.Time) bool { return t.After(s.from) && !t.After(s.to) }

// maxDowntimes bounds what is remembered of a service that restarts in a loop;
// the oldest is given up first.
const maxDowntimes = 16

// newStoreClock starts the clock of a store as its last commit has left it. Of
// wall only the wall clock counts.
func newStoreClock(wall time.Time, last storeState, grace time.Duration, visitor bool) *storeClock {
	c := &storeClock{opened: time.Now(), base: wall.Round(0).UTC(), visitor: visitor}
	if last.clock.After(c.base) {
		c.base = last.clock.UTC()
	}
	if last.servedUntil.IsZero() || grace <= 0 {
		return c
	}
	c.downtimes = slices.Clone(last.downtimes)
	if last.servedUntil.Before(c.base) {
		c.downtimes = append(c.downtimes, span{last.servedUntil, c.base})
		c.downtimes = c.downtimes[max(0, len(c.downtimes)-maxDowntimes):]
	}
	if len(c.downtimes) > 0 && !visitor {
		c.graceUntil = c.base.Add(grace)
	}
	return c
}

// Now returns the store's time.
func (c *storeClock) Now() time.Time { return c.base.Add(time.Since(c.opened)).Round(0) }

// expired is Record.Expired with the grace after downtime.
func (c *storeClock) expired(rec *Record, now time.Time) bool {
	if now.Before(c.graceUntil) && slices.ContainsFunc(c.downtimes, func(s span) bool { return s.contains(rec.ExpiresAt) }) {
		return false
	}
	return rec.Expired(now)
}

// pending are the downtimes to remember with a commit. They stay until the grace
// is over, so that a service that restarts in a loop does not use it up.
func (c *storeClock) pending(now time.Time) []span {
	if now.Before(c.graceUntil) {
		return c.downtimes
	}
	return nil
}

// removable are the stretches of time in which a record that ran out may be
// removed by now. A visitor leaves every downtime to the service, the present
// one included.
func (c *storeClock) removable(now time.Time) []span {
	if !c.visitor && !now.Before(c.graceUntil) {
		return []span{{to: now}}
	}
	var free []span
	var from time.Time
	for _, down := range c.downtimes {
		free = append(free, span{from, down.from})
		from = down.to
	}
	if c.visitor && len(c.downtimes) > 0 {
		return free
	}
	return append(free, span{from, now})
}
