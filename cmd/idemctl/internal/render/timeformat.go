package render

import (
	"fmt"
	"strconv"
	"time"
)

// TimeFormat is a way to show points in time. The zero value is invalid; it
// formats as [TimeISO].
type TimeFormat uint8

// The time formats.
const (
	// TimeRelative is "2h ago" or "in 22h".
	TimeRelative TimeFormat = iota + 1
	// TimeISO is RFC 3339 in UTC, to the second.
	TimeISO
	// TimeUnix is seconds since 1970.
	TimeUnix
)

// ParseTimeFormat reads "relative", "iso" or "unix". The empty string chooses
// relative on a terminal and iso in a pipe, where "2h ago" would be stale by
// the time it is read.
func ParseTimeFormat(s string, term Terminal) (TimeFormat, error) {
	switch {
	case s == "relative", s == "" && term.IsTTY:
		return TimeRelative, nil
	case s == "iso", s == "":
		return TimeISO, nil
	case s == "unix":
		return TimeUnix, nil
	}
	return 0, fmt.Errorf("unknown time format %q: use relative, iso or unix", s)
}

// Format shows t, relative to now if that is the format. The zero time is "-".
func (f TimeFormat) Format(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	switch f {
	case TimeRelative:
		return Relative(t, now)
	case TimeUnix:
		return strconv.FormatInt(t.Unix(), 10)
	}
	return t.UTC().Format(time.RFC3339)
}

// String is the name that [ParseTimeFormat] reads.
func (f TimeFormat) String() string {
	switch f {
	case TimeRelative:
		return "relative"
	case TimeISO:
		return "iso"
	case TimeUnix:
		return "unix"
	}
	return "invalid"
}
