//go:build race

package idem

// raceSlowdown is how much slower the race detector may make things.
const raceSlowdown = 10
