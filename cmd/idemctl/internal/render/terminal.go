package render

import (
	"fmt"
	"io"
	"strconv"

	"golang.org/x/term"
)

// Environment variables read by [Detect] beside the customary NO_COLOR,
// CLICOLOR_FORCE, FORCE_COLOR, TERM and COLUMNS.
const (
	colorEnv    = "IDEM_COLOR"     // default of the colour flag
	forceTTYEnv = "IDEM_FORCE_TTY" // columns; lets tests see terminal output without one
)

const defaultWidth = 80

// Terminal describes one output stream. Standard output and standard error are
// detected apart, as only one of them may be redirected. The zero value is a
// pipe.
type Terminal struct {
	// IsTTY is whether a person looks at the stream.
	IsTTY bool
	// Width is the number of columns; 0, as for every pipe, means no limit.
	Width int
	// Color is whether colour codes may be written.
	Color bool
}

// Detect describes the stream behind w, a terminal only if w is a file that is
// one. colorFlag is "auto", "always" or "never"; if empty, IDEM_COLOR takes its
// place, then "auto". A wrong value of either is an error.
//
// For the colour the first of these that applies decides: the flag being always
// or never; NO_COLOR not empty (off); CLICOLOR_FORCE or FORCE_COLOR not empty
// and not "0" (on); TERM=dumb (off); whether w is a terminal.
func Detect(w io.Writer, getenv func(string) string, colorFlag string) (Terminal, error) {
	t, err := detectSize(w, getenv)
	if err != nil {
		return Terminal{}, err
	}
	name := "--color"
	if colorFlag == "" {
		name, colorFlag = colorEnv, getenv(colorEnv)
	}
	switch colorFlag {
	case "always":
		t.Color = true
	case "never":
		t.Color = false
	case "auto", "":
		t.Color = autoColor(t.IsTTY, getenv)
	default:
		return Terminal{}, fmt.Errorf("invalid %s %q: use auto, always or never", name, colorFlag)
	}
	if t.Color && IsTTY(w) && !acceptsCodes(w) {
		t.Color = colorFlag == "always"
	}
	return t, nil
}

// IsTTY reports whether stream, a reader or writer, is a file that is a
// terminal. It looks at the stream alone, no environment variable.
func IsTTY(stream any) bool {
	fd, ok := descriptor(stream)
	return ok && term.IsTerminal(fd)
}

func detectSize(w io.Writer, getenv func(string) string) (Terminal, error) {
	if forced := getenv(forceTTYEnv); forced != "" {
		width, err := strconv.ParseUint(forced, 10, 16)
		if err != nil || width == 0 {
			return Terminal{}, fmt.Errorf("invalid %s %q: use a number of columns", forceTTYEnv, forced)
		}
		return Terminal{IsTTY: true, Width: int(width)}, nil
	}
	if !IsTTY(w) {
		return Terminal{}, nil
	}
	fd, _ := descriptor(w)
	if width, _, err := term.GetSize(fd); err == nil && width > 0 {
		return Terminal{IsTTY: true, Width: width}, nil
	}
	if width, err := strconv.ParseUint(getenv("COLUMNS"), 10, 16); err == nil && width > 0 {
		return Terminal{IsTTY: true, Width: int(width)}, nil
	}
	return Terminal{IsTTY: true, Width: defaultWidth}, nil
}

func autoColor(isTTY bool, getenv func(string) string) bool {
	forced := func(name string) bool { v := getenv(name); return v != "" && v != "0" }
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case forced("CLICOLOR_FORCE"), forced("FORCE_COLOR"):
		return true
	case getenv("TERM") == "dumb":
		return false
	}
	return isTTY
}

func descriptor(stream any) (int, bool) {
	file, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	return int(file.Fd()), true
}
