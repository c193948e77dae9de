package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// flagError is what a flag of ours says about its value. It names the flag, so
// it is printed without what the library of flags puts around it.
type flagError struct{ text string }

func (e *flagError) Error() string { return e.text }

// wrongFlag is the error for flags that cannot be read.
func wrongFlag(cmd *cobra.Command, err error) error {
	var own *flagError
	var number *strconv.NumError
	switch {
	case errors.As(err, &own):
		err = own
	case errors.As(err, &number): // it names functions of Go
		err = errors.New(strings.TrimSuffix(err.Error(), ": "+number.Error()))
	}
	return fail(exitUsage, cmd.CommandPath()+" --help", "%w", err)
}

// textFlag is a flag that may be left out but not be empty, which is what a
// script's variable is when something went wrong.
type textFlag struct {
	name  string
	value *string
}

func (f textFlag) Set(text string) error {
	if text == "" {
		return &flagError{"--" + f.name + " is empty"}
	}
	*f.value = text
	return nil
}

func (f textFlag) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

func (f textFlag) Type() string { return "string" }

// countFlag is a flag for a whole number that is not negative.
type countFlag struct {
	name  string
	value *int
}

func newCountFlag(name string, value *int, initial int) countFlag {
	*value = initial
	return countFlag{name, value}
}

func (f countFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return &flagError{fmt.Sprintf("--%s: %q is not a whole number from 0", f.name, text)}
	}
	*f.value = n
	return nil
}

func (f countFlag) String() string {
	if f.value == nil {
		return "0"
	}
	return strconv.Itoa(*f.value)
}

func (f countFlag) Type() string { return "int" }

// durationFlag is a flag in Go's duration syntax plus d and w, not negative.
type durationFlag struct{ value *time.Duration }

func newDurationFlag(value *time.Duration, initial time.Duration) durationFlag {
	*value = initial
	return durationFlag{value}
}

func (d durationFlag) Set(text string) error {
	value, err := render.ParseDuration(text)
	if err == nil && value < 0 {
		err = fmt.Errorf("invalid duration %q: it is negative", text)
	}
	if err == nil {
		*d.value = value
	}
	return err
}

func (d durationFlag) String() string {
	if d.value == nil || *d.value == 0 {
		return ""
	}
	return d.value.String()
}

func (d durationFlag) Type() string { return "DURATION" }
