//go:build !race

package idemhttp_test

const raceDetector = false
