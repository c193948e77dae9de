//go:build !race

package idem

const raceSlowdown = 1
