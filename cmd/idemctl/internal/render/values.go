package render

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
	year = 365 * day
)

// Age is d in its largest fitting unit: "412ms", "2.1s", "41s", "14m", "2h",
// "3d", "2y". It rounds towards zero, so nothing looks older than it is. Hours
// run up to 47 and days up to 729, since "1d" and "1y" would hide half.
func Age(d time.Duration) string {
	if d < 0 {
		return "-" + Age(-max(d, -math.MaxInt64))
	}
	switch {
	case d == 0:
		return "0s"
	case d < time.Microsecond:
		return whole(d, time.Nanosecond, "ns")
	case d < time.Millisecond:
		return whole(d, time.Microsecond, "µs")
	case d < time.Second:
		return whole(d, time.Millisecond, "ms")
	case d < 10*time.Second && d%time.Second >= 100*time.Millisecond:
		return whole(d, time.Second, "") + "." + whole(d%time.Second, 100*time.Millisecond, "s")
	case d < time.Minute:
		return whole(d, time.Second, "s")
	case d < time.Hour:
		return whole(d, time.Minute, "m")
	case d < 2*day:
		return whole(d, time.Hour, "h")
	case d < 2*year:
		return whole(d, day, "d")
	}
	return whole(d, year, "y")
}

func whole(d, unit time.Duration, name string) string {
	return strconv.FormatInt(int64(d/unit), 10) + name
}

// Relative is t as seen from now: "2h ago", "in 22h", "now" within a second of
// it, "-" for the zero time.
func Relative(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	past := now.Sub(t).Truncate(time.Second)
	switch {
	case past == 0:
		return "now"
	case past < 0:
		return "in " + Age(-max(past, -math.MaxInt64))
	}
	return Age(past) + " ago"
}

// Bytes is n in binary units: "182 B", "4.1 MiB".
func Bytes(n int64) string {
	value := math.Abs(float64(n))
	if value < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	// 1023.95 would print as 1024.0 of the smaller unit.
	unit := 0
	for value /= 1024; value >= 1023.95; value /= 1024 {
		unit++
	}
	sign := ""
	if n < 0 {
		sign = "-"
	}
	return sign + strconv.FormatFloat(value, 'f', 1, 64) + " " + "KMGTPE"[unit:unit+1] + "iB"
}

// Count is n with thousands separators: "18,204".
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

// Percent is part of whole to one decimal: "98.4%", or "-" when whole is 0.
// Only nothing is "0.0%" and only everything "100.0%"; what rounding would turn
// into either is shown as "<0.1%" and "99.9%".
func Percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	share := float64(part) / float64(whole) * 100
	switch {
	case part != 0 && share > 0 && share < 0.05:
		return "<0.1%"
	case part < whole && share >= 99.95:
		return "99.9%"
	}
	return strconv.FormatFloat(share, 'f', 1, 64) + "%"
}
