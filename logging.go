package idem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
)

// logEvent writes one event: warnings for what needs a person's eye. The id of
// the key is hashed, since logs are read by more people than the store; the
// error's text quotes keys and is left out where its kind says it all.
func logEvent(l *slog.Logger, e Event) {
	level := slog.LevelDebug
	switch e.Kind {
	case EventMismatch, EventInterrupted, EventLeaseLost, EventStoreError:
		level = slog.LevelWarn
	}
	ctx := context.Background()
	if !l.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("event", e.Kind.String())}
	add := func(a slog.Attr, given bool) {
		if given {
			attrs = append(attrs, a)
		}
	}
	add(slog.String("scope", e.Key.Scope), e.Key.Scope != "")
	add(slog.String("id_hash", hashID(e.Key.ID)), e.Key.ID != "")
	add(slog.Uint64("version", e.Version), e.Version != 0)
	add(slog.Int("attempt", e.Attempt), e.Attempt != 0)
	add(slog.String("trace_id", e.TraceID), e.TraceID != "")
	add(slog.Duration("ran", e.Ran), e.Ran != 0)
	add(slog.Duration("waited", e.Waited), e.Waited != 0)
	add(slog.Int("count", e.Count), e.Count != 0)
	add(slog.String("reason", string(e.Reason)), e.Reason != "")
	add(slog.Any("parts", e.Parts), len(e.Parts) > 0)
	if e.Kind == EventStoreError && e.Err != nil {
		attrs = append(attrs, slog.String("error", storeCause(e)))
	}
	l.LogAttrs(ctx, level, "idem", attrs...)
}

// storeCause is the store's own error, without the key that the guard wrapped
// around it and without the function's error. Errors about one record quote its
// key, so of them only the kind is kept.
func storeCause(e Event) string {
	err := e.Err
	if lost := (*NotRecordedError)(nil); errors.As(err, &lost) {
		err = lost.Store
	} else if inner := errors.Unwrap(err); inner != nil && e.Key.ID != "" {
		err = inner
	}
	if errors.Is(err, ErrPoisoned) {
		return err.Error()
	}
	for _, kind := range []error{ErrCorrupt, ErrFormat, ErrInvalidRecord} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return err.Error()
}

func hashID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}
