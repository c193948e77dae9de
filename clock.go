package idem

import "time"

// storeClock is the time of a store. It never goes back: it starts at the later
// of the wall clock and the highest time the store has written, and from there
// follows the monotonic clock, so a step of the wall clock in either direction
// cannot expire records early while the store is open.
//
// It also knows about downtime. Records that ran out while no service had the
// file open were of no use to clients that wanted to retry then; they stay until
// the service has been up for the grace period.
type storeClock struct {
	opened time.Time // carries the monotonic reading
	base   time.Time // the store's time at opened

	servedUntil time.Time // when a service was last known to be up; zero if never
	graceUntil  time.Time // until when what ran out in between stays; zero for none
}

// newStoreClock starts the clock of a store that wrote its last record at high
// and was last served at servedUntil. Of wall only the wall clock counts.
func newStoreClock(wall, high, servedUntil time.Time, grace time.Duration) *storeClock {
	c := &storeClock{opened: time.Now(), base: wall.Round(0).UTC(), servedUntil: servedUntil}
	if high.After(c.base) {
		c.base = high.UTC()
	}
	if !servedUntil.IsZero() && grace > 0 {
		c.graceUntil = c.base.Add(grace)
	}
	return c
}

// Now returns the store's time.
func (c *storeClock) Now() time.Time { return c.base.Add(time.Since(c.opened)).Round(0) }

// expired is Record.Expired with the grace after downtime.
func (c *storeClock) expired(rec *Record, now time.Time) bool {
	if now.Before(c.graceUntil) && rec.ExpiresAt.After(c.servedUntil) && !rec.ExpiresAt.After(c.base) {
		return false
	}
	return rec.Expired(now)
}

// served is the time to remember as served. It stands still during the grace
// period, so that a service that restarts in a loop does not use the period up.
func (c *storeClock) served(now time.Time) time.Time {
	if now.Before(c.graceUntil) {
		return c.servedUntil
	}
	return now
}
