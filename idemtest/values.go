package idemtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/idembolt/idem"
)

func valueChecks() []check {
	checks := []check{
		{name: "nil stays nil", run: func(t *testing.T, s *subject) { valueLives(t, s, nil) }},
		{name: "empty stays empty and is not nil", run: func(t *testing.T, s *subject) { valueLives(t, s, []byte{}) }},
		{name: "every byte comes back", run: valueEveryByte},
		{name: "value of MaxValueBytes comes back", run: valueLargest},
		{name: "a shorter value leaves nothing of a longer one", run: valueShorter},
		{name: "nil and empty can replace each other", run: valueNilEmpty},
	}
	for _, size := range []int{1, 4 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		checks = append(checks, check{
			name: fmt.Sprintf("value of %d bytes comes back", size),
			run:  func(t *testing.T, s *subject) { valueLives(t, s, pattern(size)) },
		})
	}
	return checks
}

// pattern is a value without repetition, so that a shifted or repeated block is
// noticed.
func pattern(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}

func valueLives(t *testing.T, s *subject, value []byte) {
	rec := s.completed("a")
	rec.Value = value
	rec = s.create(t, rec)
	s.wantRecord(t, rec)
	rec = s.swap(t, rec.Version, rec)
	s.wantRecord(t, rec)
	for _, got := range s.scan(t, idem.Query{}) {
		if d := diff(got, rec); d != "" {
			t.Errorf("Scan yielded for %q: %s", rec.Key, d)
		}
	}
}

func valueEveryByte(t *testing.T, s *subject) {
	value := make([]byte, 16, 512) // begins and ends with zero bytes
	for i := range 256 {
		value = append(value, byte(i))
	}
	valueLives(t, s, append(value, make([]byte, 16)...))
}

func valueLargest(t *testing.T, s *subject) {
	rec := s.completed("a")
	rec.Value = pattern(idem.MaxValueBytes)
	s.wantRecord(t, s.create(t, rec))
}

func valueShorter(t *testing.T, s *subject) {
	rec := s.completed("a")
	rec.Value = pattern(200 << 10)
	rec = s.create(t, rec)
	for _, size := range []int{100 << 10, 10, 0} {
		rec.Value = pattern(size)
		rec = s.swap(t, rec.Version, rec)
		s.wantRecord(t, rec)
	}
}

func valueNilEmpty(t *testing.T, s *subject) {
	rec := s.completed("a")
	rec.Value = nil
	rec = s.create(t, rec)
	for _, value := range [][]byte{{}, nil, {}} {
		rec.Value = value
		rec = s.swap(t, rec.Version, rec)
		s.wantRecord(t, rec)
	}
}
