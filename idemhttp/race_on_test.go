//go:build race

package idemhttp_test

// raceDetector says whether the race detector is at work, which bounds the number
// of goroutines.
const raceDetector = true
