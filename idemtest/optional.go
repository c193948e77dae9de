package idemtest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

// ownerRoom is what a guard appends to Liveness.Owner: "#" and 16 digits.
const ownerRoom = 17

func optionalChecks() []check {
	return []check{
		{name: "Clock never goes back", run: clockRises},
		{name: "Clock never goes back among concurrent readers", run: clockRisesTogether},
		{name: "Clock moves on", run: clockMoves},
		{name: "Liveness owner is alive, stays the same, and leaves the guard room", run: livenessOwner},
		{name: "Liveness calls an owner alive that it cannot know", run: livenessUnknown},
		{name: "SecretKeeper has a secret of 16 bytes or more that stays the same", run: secretStays},
		{name: "SecretKeeper returns a copy", run: secretCopied},
		{name: "SecretKeeper has a secret of more than one repeated byte", run: secretRandom},
	}
}

func (s *subject) clock(t *testing.T) idem.Clock {
	t.Helper()
	c, ok := s.current().(idem.Clock)
	if !ok {
		t.Skip("the store does not implement idem.Clock")
	}
	return c
}

func clockRises(t *testing.T, s *subject) {
	c := s.clock(t)
	last := c.Now()
	if last.IsZero() {
		t.Fatalf("Now() = the zero time, want the store's time")
	}
	for i := range 1000 {
		now := c.Now()
		if now.Before(last) {
			t.Fatalf("Now() = %s at call %d, want not before %s", now, i, last)
		}
		if last = now; i%100 == 0 {
			time.Sleep(pollEvery)
		}
	}
	s.create(t, s.completed("a"))
	if now := c.Now(); now.Before(last) {
		t.Errorf("Now() = %s after a write, want not before %s", now, last)
	}
}

func clockRisesTogether(t *testing.T, s *subject) {
	c := s.clock(t)
	together(8, func(int) {
		for last := c.Now(); !t.Failed(); {
			for range 1000 {
				now := c.Now()
				if now.Before(last) {
					t.Errorf("Now() = %s, want not before %s", now, last)
					return
				}
				last = now
			}
			return
		}
	})
}

func clockMoves(t *testing.T, s *subject) {
	c := s.clock(t)
	began := c.Now()
	if !eventually(func() bool { return c.Now().Sub(began) >= 5*time.Millisecond }) {
		t.Errorf("Now() has stood still at %s for %s, want it to move on", began, patience)
	}
}

func (s *subject) liveness(t *testing.T) idem.Liveness {
	t.Helper()
	l, ok := s.current().(idem.Liveness)
	if !ok {
		t.Skip("the store does not implement idem.Liveness")
	}
	return l
}

func livenessOwner(t *testing.T, s *subject) {
	l := s.liveness(t)
	owner := l.Owner()
	switch {
	case owner == "", strings.Contains(owner, "#"), len(owner) > 256-ownerRoom:
		t.Errorf("Owner() = %q, want 1 to %d bytes without '#', which begins the guard's own part", owner, 256-ownerRoom)
	case owner != l.Owner():
		t.Errorf("Owner() = %q, then %q, want the same", owner, l.Owner())
	case !l.Alive(owner):
		t.Errorf("Alive(%q) = false, want true: it is this process", owner)
	}
}

func livenessUnknown(t *testing.T, s *subject) {
	l := s.liveness(t)
	for _, owner := range []string{"", "somebody", "idemtest:unknown:owner", strings.Repeat("x", 256)} {
		if !l.Alive(owner) {
			t.Errorf("Alive(%q) = false, want true: nothing is known about it", owner)
		}
	}
}

func (s *subject) keeper(t *testing.T) idem.SecretKeeper {
	t.Helper()
	k, ok := s.current().(idem.SecretKeeper)
	if !ok {
		t.Skip("the store does not implement idem.SecretKeeper: its users pass WithSecret")
	}
	return k
}

// Failures tell nothing about the secret: logs are not the place for it.
func secretStays(t *testing.T, s *subject) {
	k := s.keeper(t)
	secret := k.Secret()
	if len(secret) < 16 {
		t.Errorf("Secret() has %d bytes, want 16 or more", len(secret))
	}
	s.create(t, s.completed("a"))
	if !bytes.Equal(secret, k.Secret()) {
		t.Errorf("Secret() changed, want the same for the lifetime of the records")
	}
}

func secretCopied(t *testing.T, s *subject) {
	k := s.keeper(t)
	secret := k.Secret()
	before := bytes.Clone(secret)
	scribble(secret)
	if !bytes.Equal(before, k.Secret()) {
		t.Errorf("Secret() changed with a slice that it had returned, want a copy")
	}
}

func secretRandom(t *testing.T, s *subject) {
	secret := s.keeper(t).Secret()
	for _, b := range secret {
		if b != secret[0] {
			return
		}
	}
	t.Errorf("Secret() repeats one byte, want random ones")
}
