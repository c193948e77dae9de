package idem

import "sync"

// watchers lets callers wait for the next change of a key. The zero value is
// ready for use.
type watchers struct {
	mu    sync.Mutex
	byKey map[Key]*watcher
}

// watcher is shared by everybody who waits for the same change of one key.
type watcher struct {
	changed chan struct{}
	users   int
}

func (w *watchers) watch(key Key) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.byKey[key]
	if one == nil {
		if w.byKey == nil {
			w.byKey = make(map[Key]*watcher)
		}
		one = &watcher{changed: make(chan struct{})}
		w.byKey[key] = one
	}
	one.users++
	return one.changed, sync.OnceFunc(func() { w.leave(key, one) })
}

func (w *watchers) leave(key Key, one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.users--; one.users == 0 && w.byKey[key] == one {
		delete(w.byKey, key)
	}
}

// notify wakes everybody who waits for the key.
func (w *watchers) notify(key Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.byKey[key]; one != nil {
		delete(w.byKey, key)
		close(one.changed)
	}
}
