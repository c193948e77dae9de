package idemtest_test

import (
	"bytes"
	"crypto/rand"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

// deaf is a Waiter that does not hear of swaps.
type deaf struct{ *flawed }

func (d deaf) Watch(key idem.Key) (<-chan struct{}, func()) {
	changed := make(chan struct{})
	return changed, func() {}
}

// backwards is a Clock that goes back.
type backwards struct {
	*flawed
	began time.Time
}

func (b backwards) Now() time.Time { return b.began.Add(-time.Since(b.began)) }

// dead is a Liveness that takes itself for dead.
type dead struct{ *flawed }

func (dead) Owner() string     { return "me" }
func (dead) Alive(string) bool { return false }

// fickle is a SecretKeeper that does not remember.
type fickle struct{ *flawed }

func (fickle) Secret() []byte { return []byte(rand.Text()) }

// optionalFlaws are stores with a bug in an optional interface.
func optionalFlaws() []flawOf {
	return []flawOf{
		{name: "Watch does not hear of changes", found: "Waiter/Swap wakes the watcher", open: func(*testing.T) idem.Store { return deaf{newFlawed()} }},
		{name: "Clock goes back", found: "Optional/Clock never goes back", open: func(*testing.T) idem.Store { return backwards{newFlawed(), time.Now()} }},
		{name: "Liveness takes itself for dead", found: "Optional/Liveness owner is alive, stays the same, and leaves the guard room", open: func(*testing.T) idem.Store { return dead{newFlawed()} }},
		{name: "SecretKeeper forgets", found: "Optional/SecretKeeper has a secret of 16 bytes or more that stays the same", open: func(*testing.T) idem.Store { return fickle{newFlawed()} }},
	}
}

// forgetful opens as a new, empty store.
func forgetful(*testing.T) (idem.Store, func() idem.Store) {
	return newFlawed(), func() idem.Store { return newFlawed() }
}

// restarting gives out versions from 1 on when it is opened, or from where its
// live records end.
func restarting(t *testing.T) (idem.Store, func() idem.Store) {
	f := newFlawed()
	return f, func() idem.Store {
		f.forgetting(t.Context())
		return f
	}
}

// rekeyed has another secret each time it is opened.
func rekeyed(*testing.T) (idem.Store, func() idem.Store) {
	f := newFlawed()
	open := func() idem.Store { return withSecret{f, []byte(rand.Text())} }
	return open(), open
}

type withSecret struct {
	*flawed
	secret []byte
}

func (w withSecret) Secret() []byte { return bytes.Clone(w.secret) }

func reopenFlaws() []flawOf {
	return []flawOf{
		{name: "records are lost on opening", found: "Get/newest version is returned, however often it was read before", reopen: forgetful},
		{name: "versions restart on opening", found: "Versions/greater after Delete and Create", reopen: restarting},
		{name: "secret changes on opening", found: "Reopen/secret stays the same", reopen: rekeyed},
	}
}

// flawOf is a flaw with the whole store that has it.
type flawOf struct {
	name, found string
	open        func(t *testing.T) idem.Store
	reopen      func(t *testing.T) (idem.Store, func() idem.Store)
}
