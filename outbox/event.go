package outbox

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of an event. Sizes are in bytes.
const (
	MaxPayloadBytes     = 1 << 20
	MaxNameBytes        = 255 // of ID, AggregateType, AggregateID, Type and a header's name
	MaxHeaders          = 64
	MaxHeaderValueBytes = 4 << 10
	MaxTraceIDBytes     = 128
)

// Event is something that happened to an aggregate. All text is valid UTF-8, and
// names, which are ID, AggregateType, AggregateID, Type and the names of headers,
// have 1 to 255 bytes without control characters.
type Event struct {
	// ID is the event's own, by which receivers drop repeats. If it is empty Append
	// makes a UUID (version 7). It stays the same however often the event is
	// published, also after Retry. Two events should not share one.
	ID string
	// AggregateType and AggregateID name what the event is about. Events of one
	// aggregate are published in order. Debezium takes the topic from the type and
	// the message key from the id.
	AggregateType, AggregateID string
	// Type says what happened.
	Type string
	// Payload is at most 1 MiB. Nil and empty are told apart.
	Payload []byte
	// Headers are at most 64, with values of at most 4 KiB.
	Headers map[string]string
	// TraceID is the caller's trace id, if there is one: at most 128 bytes.
	TraceID string
	// CreatedAt is set by Append, to the store's time, unless it is given. It is
	// UTC with microseconds.
	CreatedAt time.Time
}

// complete fills in what the caller may leave out.
func (e *Event) complete(now time.Time) {
	if e.ID == "" {
		e.ID = newID(now)
	}
	if e.CreatedAt.IsZero() {
		e.CreatedAt = now
	}
	e.CreatedAt = e.CreatedAt.UTC().Truncate(time.Microsecond)
}

func (e *Event) validate() error {
	for _, f := range []struct{ what, text string }{
		{"id", e.ID}, {"aggregate type", e.AggregateType}, {"aggregate id", e.AggregateID}, {"type", e.Type},
	} {
		if fault := nameFault(f.text); fault != "" {
			return e.invalid("its %s %s", f.what, fault)
		}
	}
	switch {
	case len(e.Payload) > MaxPayloadBytes:
		return e.invalid("its payload has %d bytes, at most %d are allowed", len(e.Payload), MaxPayloadBytes)
	case len(e.TraceID) > MaxTraceIDBytes || !utf8.ValidString(e.TraceID):
		return e.invalid("its trace id must be UTF-8 of at most %d bytes", MaxTraceIDBytes)
	case e.CreatedAt.Year() < 1970 || e.CreatedAt.Year() > 9999:
		return e.invalid("its time, %s, is not between 1970 and 9999", e.CreatedAt)
	case len(e.Headers) > MaxHeaders:
		return e.invalid("it has %d headers, at most %d are allowed", len(e.Headers), MaxHeaders)
	}
	for name, value := range e.Headers {
		if fault := nameFault(name); fault != "" {
			return e.invalid("the name of header %.40q %s", name, fault)
		}
		if len(value) > MaxHeaderValueBytes || !utf8.ValidString(value) {
			return e.invalid("the value of header %q must be UTF-8 of at most %d bytes", name, MaxHeaderValueBytes)
		}
	}
	return nil
}

func (e *Event) invalid(format string, args ...any) error {
	return fmt.Errorf("%w: event %.40q: "+format, append([]any{ErrInvalidEvent, e.ID}, args...)...)
}

// nameFault says what is wrong with a name, or nothing.
func nameFault(s string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > MaxNameBytes:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(s), MaxNameBytes)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.IndexFunc(s, unicode.IsControl) >= 0:
		return "holds a control character"
	}
	return ""
}

// storedEvent is an event in the file.
type storedEvent struct {
	ID            string            `json:"id"`
	AggregateType string            `json:"at"`
	AggregateID   string            `json:"ai"`
	Type          string            `json:"t"`
	Payload       []byte            `json:"p"`
	Headers       map[string]string `json:"h,omitempty"`
	TraceID       string            `json:"tr,omitempty"`
	Created       int64             `json:"c"`
}

func (e *Event) stored() storedEvent {
	return storedEvent{
		ID: e.ID, AggregateType: e.AggregateType, AggregateID: e.AggregateID, Type: e.Type,
		Payload: e.Payload, Headers: e.Headers, TraceID: e.TraceID, Created: e.CreatedAt.UnixMicro(),
	}
}

func (s *storedEvent) event() Event {
	return Event{
		ID: s.ID, AggregateType: s.AggregateType, AggregateID: s.AggregateID, Type: s.Type,
		Payload: s.Payload, Headers: s.Headers, TraceID: s.TraceID, CreatedAt: time.UnixMicro(s.Created).UTC(),
	}
}

func (e *Event) encode() ([]byte, error) { return json.Marshal(e.stored()) }

// decodeEvent reads what encode wrote. Bytes that are something else are an error,
// also where JSON would let them pass: they must not end up as an event without
// an aggregate.
func decodeEvent(enc []byte) (Event, error) {
	var s storedEvent
	if err := json.Unmarshal(enc, &s); err != nil {
		return Event{}, fmt.Errorf("decode the event: %w", err)
	}
	e := s.event()
	if err := e.validate(); err != nil {
		return Event{}, fmt.Errorf("decode the event: %w", err)
	}
	return e, nil
}

// newID is a UUID of version 7: the time first, so that the ids of a table are
// nearly in order.
func newID(now time.Time) string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the process instead
	ms := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	copy(b[:6], ms[2:])
	b[6] = b[6]&0x0F | 0x70
	b[8] = b[8]&0x3F | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
