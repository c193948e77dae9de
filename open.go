package idem

import (
	"context"
	"errors"
	"io"
	"log/slog"
)

// Open opens the bbolt file at path, creating it if there is none, and returns a
// guard on it with a janitor running. Close stops both. The file is held locked
// until then: idemctl can read it only when the service is stopped.
//
// Errors are those of OpenBoltStore and New.
func Open(path string, opts ...Option) (*Guard, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	store, err := OpenBoltStore(context.Background(), path, s.bolt)
	if err != nil {
		return nil, err
	}
	g, err := openGuard(store, s)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return g, nil
}

func openGuard(store *BoltStore, s settings) (*Guard, error) {
	g, err := newGuard(store, s)
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, store)
	if s.logger != nil {
		info, err := store.Info(context.Background())
		if err != nil {
			return nil, err
		}
		for _, warning := range info.Warnings {
			s.logger.Warn("idem", slog.String("path", info.Path), slog.String("warning", warning))
		}
	}
	if s.bolt.ReadOnly {
		return g, nil
	}
	config := s.janitor
	report := config.OnRound
	config.OnRound = func(removed int, err error) {
		if removed > 0 {
			g.emit(Event{Kind: EventExpired, Count: removed})
		}
		if err != nil {
			g.emit(Event{Kind: EventStoreError, Err: err})
		}
		if report != nil {
			report(removed, err)
		}
	}
	j, err := StartJanitor(store, config)
	if err != nil {
		return nil, err
	}
	g.closers = []io.Closer{j, store}
	return g, nil
}
