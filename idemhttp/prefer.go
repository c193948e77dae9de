package idemhttp

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// preferredWait reads the wait preference of RFC 7240, bounded by limit. A
// request without one, or with one that cannot be read, does not wait:
// preferences are hints and never an error.
func preferredWait(h http.Header, limit time.Duration) time.Duration {
	for _, line := range h.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			name, value, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			seconds, err := strconv.ParseUint(strings.Trim(value, " \t\""), 10, 32)
			if err != nil {
				return 0
			}
			return min(time.Duration(seconds)*time.Second, limit)
		}
	}
	return 0
}
