package render

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes: "4096", "64KiB", "1MiB", "2GiB".
func ParseSize(s string) (int64, error) {
	number, shift := s, 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if rest, found := strings.CutSuffix(s, unit); found {
			number, shift = strings.TrimSpace(rest), 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("invalid size %q: use a number of bytes, or one with KiB, MiB or GiB", s)
	}
	return int64(n) << shift, nil
}
