package render

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// ParseDuration reads Go's duration syntax with two more units, d for 24 hours
// and w for seven days: "30d", "1d12h", "1.5w". Negative durations are returned
// as such. Errors name the whole text and what is wrong with it; durations
// beyond 292 years are an error.
func ParseDuration(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	rest, negative := strings.CutPrefix(s, "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	if rest == "" {
		return 0, fmt.Errorf("invalid duration %q: want a number and a unit, such as 90s, 12h or 30d", s)
	}
	var sum time.Duration
	for rest != "" {
		var part time.Duration
		var err error
		part, rest, err = leadingPart(rest)
		if err == nil && part > math.MaxInt64-sum {
			err = errTooLong
		}
		if err != nil {
			return 0, fmt.Errorf("invalid duration %q: %w", s, err)
		}
		sum += part
	}
	if negative {
		return -sum, nil
	}
	return sum, nil
}

var errTooLong = errors.New("longer than 292 years")

// leadingPart reads the first number and unit of s, which is not negative.
func leadingPart(s string) (part time.Duration, rest string, err error) {
	number, after := span(s, func(c byte) bool { return c == '.' || c >= '0' && c <= '9' })
	unit, rest := span(after, func(c byte) bool { return c != '.' && c != '-' && c != '+' && (c < '0' || c > '9') })
	if number == "" || strings.Trim(number, ".") == "" || strings.Count(number, ".") > 1 {
		return 0, "", fmt.Errorf("want a number at %q", s)
	}
	if unit == "" {
		return 0, "", fmt.Errorf("no unit after %q, such as s, h or d", number)
	}
	scale := time.Duration(1)
	switch unit {
	case "d":
		unit, scale = "h", day/time.Hour
	case "w":
		unit, scale = "h", week/time.Hour
	case "ns", "us", "µs", "μs", "ms", "s", "m", "h":
	default:
		return 0, "", fmt.Errorf("unknown unit %q, use ns, us, ms, s, m, h, d or w", unit)
	}
	// The number and unit are well formed, so all that is left to fail is size.
	part, err = time.ParseDuration(number + unit)
	if err != nil || part > math.MaxInt64/scale {
		return 0, "", errTooLong
	}
	return part * scale, rest, nil
}

// span splits s after its longest prefix of bytes that satisfy in.
func span(s string, in func(byte) bool) (prefix, rest string) {
	i := 0
	for i < len(s) && in(s[i]) {
		i++
	}
	return s[:i], s[i:]
}
