package cli

import (
	"github.com/spf13/cobra"
)

// newFamily makes a command that only has others. Called by itself it helps; with
// the name of a command that it does not have it fails, where cobra would help.
func newFamily(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.GroupID = groupPatterns
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, unknownCommand
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(members...)
	return cmd
}
