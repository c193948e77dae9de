package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// tokenArgs lets a token stand where it is written although it begins with a dash,
// as one in 64 does. As flags its letters could mean anything: one that begins with
// -h would show the help, and exit code 0 would let a script go on.
func tokenArgs(root *cobra.Command, args []string) []string {
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.Parent() == nil || cmd.Parent().Name() != "token" || slices.Contains(rest, "--") {
		return args
	}
	isToken := regexp.MustCompile(`^-[A-Za-z0-9_-]{31}$`)
	i := slices.IndexFunc(args, isToken.MatchString)
	if i < 0 || i > 0 && takesValue(cmd, args[i-1]) {
		return args
	}
	moved := slices.Delete(slices.Clone(args), i, i+1)
	return append(moved, "--", args[i])
}

// takesValue reports whether the argument after arg is the value of a flag.
func takesValue(cmd *cobra.Command, arg string) bool {
	if arg == "-o" {
		return true
	}
	name, long := strings.CutPrefix(arg, "--")
	flag := cmd.Flag(name)
	return long && flag != nil && flag.NoOptDefVal == ""
}
