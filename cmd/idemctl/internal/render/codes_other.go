//go:build !windows

package render

import "io"

// acceptsCodes reports whether the terminal behind w interprets colour codes.
func acceptsCodes(io.Writer) bool { return true }
