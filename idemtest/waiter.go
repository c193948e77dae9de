package idemtest

import (
	"sync"
	"testing"
	"time"

	"github.com/idembolt/idem"
)

func waiterChecks() []check {
	checks := []check{
		{name: "every watcher of a key is woken", run: watchMany},
		{name: "change between Watch and the wait is not lost", run: watchEarly},
		{name: "no change of many is lost", run: watchLoop},
		{name: "changes that fail need not wake, and break nothing", run: watchFailed},
		{name: "stop may be called twice, and before or after the change", run: watchStop},
		{name: "stop of one watcher leaves the others watching", run: watchStopOne},
		{name: "change is there to read once the watcher is woken", run: watchThenRead},
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, s *subject)
	}{
		{"Create", func(t *testing.T, s *subject) { s.create(t, s.processing("new")) }},
		{"Swap", func(t *testing.T, s *subject) { s.swap(t, s.version(t, "a"), s.completed("a")) }},
		{"Delete", func(t *testing.T, s *subject) { s.wantDelete(t, key("a"), s.version(t, "a"), nil) }},
	} {
		checks = append(checks, check{name: c.name + " wakes the watcher", run: func(t *testing.T, s *subject) {
			s.create(t, s.processing("a"))
			watched := key("a")
			if c.name == "Create" {
				watched = key("new")
			}
			changed, stop := s.waiter(t).Watch(watched)
			defer stop()
			c.change(t, s)
			wantWoken(t, changed, watched, c.name)
		}})
	}
	for i := range checks {
		checks[i].overlaps = true // a watch does not outlive its store
	}
	return checks
}

func (s *subject) waiter(t *testing.T) idem.Waiter {
	t.Helper()
	w, ok := s.current().(idem.Waiter)
	if !ok {
		t.Skip("the store does not implement idem.Waiter")
	}
	return w
}

func (s *subject) version(t *testing.T, id string) uint64 {
	t.Helper()
	rec, err := s.Get(t.Context(), key(id))
	if err != nil {
		t.Fatalf("Get(%q) = %v, want the record", key(id), err)
	}
	return rec.Version
}

// woken waits for the signal, and reports false if there was none.
func woken(changed <-chan struct{}) bool {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-changed:
		return true
	case <-limit.C:
		return false
	}
}

func wantWoken(t *testing.T, changed <-chan struct{}, k idem.Key, after string) {
	t.Helper()
	if !woken(changed) {
		t.Errorf("Watch(%q): the channel is still open %s after %s, want it closed", k, patience, after)
	}
}

func watchMany(t *testing.T, s *subject) {
	w := s.waiter(t)
	rec := s.create(t, s.processing("a"))
	var watching, done sync.WaitGroup
	for range 20 {
		watching.Add(1)
		done.Go(func() {
			changed, stop := w.Watch(rec.Key)
			defer stop()
			watching.Done()
			wantWoken(t, changed, rec.Key, "Swap")
		})
	}
	watching.Wait()
	s.swap(t, rec.Version, s.completed("a"))
	done.Wait()
}

func watchEarly(t *testing.T, s *subject) {
	w := s.waiter(t)
	changed, stop := w.Watch(key("a"))
	defer stop()
	rec := s.create(t, s.processing("a"))
	s.swap(t, rec.Version, s.completed("a"))
	wantWoken(t, changed, rec.Key, "Create and Swap")
}

func watchLoop(t *testing.T, s *subject) {
	w := s.waiter(t)
	rec := s.create(t, s.processing("a"))
	for i := range 20 {
		changed, stop := w.Watch(rec.Key)
		rec = s.swap(t, rec.Version, s.processing("a"))
		if !woken(changed) {
			t.Fatalf("Watch(%q): the channel is still open %s after Swap number %d, want it closed", rec.Key, patience, i+1)
		}
		stop()
	}
}

func watchFailed(t *testing.T, s *subject) {
	w := s.waiter(t)
	rec := s.create(t, s.processing("a"))
	changed, stop := w.Watch(rec.Key)
	defer stop()
	s.refuse(t, rec.Key, rec.Version+1, &rec)
	s.conflict(t, rec)
	s.remove(t, rec)
	wantWoken(t, changed, rec.Key, "Delete")
}

func watchStop(t *testing.T, s *subject) {
	w := s.waiter(t)
	_, before := w.Watch(key("a"))
	before()
	before()
	_, after := w.Watch(key("a"))
	s.create(t, s.processing("a"))
	after()
	after()
	before()
}

func watchStopOne(t *testing.T, s *subject) {
	w := s.waiter(t)
	_, stopFirst := w.Watch(key("a"))
	changed, stop := w.Watch(key("a"))
	defer stop()
	stopFirst()
	stopFirst()
	s.create(t, s.processing("a"))
	wantWoken(t, changed, key("a"), "Create")
}

// watchThenRead waits as a guard does: watch, read, wait, read again.
func watchThenRead(t *testing.T, s *subject) {
	w := s.waiter(t)
	rec := s.create(t, s.processing("a"))
	var done sync.WaitGroup
	done.Go(func() {
		for limit := time.Now().Add(patience); time.Now().Before(limit); {
			changed, stop := w.Watch(rec.Key)
			got, err := s.Get(t.Context(), rec.Key)
			if err == nil && got.State == idem.Completed {
				stop()
				return
			}
			ok := woken(changed)
			stop()
			if !ok {
				break
			}
		}
		t.Errorf("Watch and Get(%q) did not show the change within %s", rec.Key, patience)
	})
	s.swap(t, rec.Version, s.completed("a"))
	done.Wait()
}
