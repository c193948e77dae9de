package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem/cmd/idemctl/internal/spell"
)

// newHelpCommand is cobra's, but a topic that does not exist is an error.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Help about any command",
		Long:  "Shows the help of a command, or one of the topics that idemctl --help lists.",
		Example: `  idemctl help run
  idemctl help exit-codes`,
		ValidArgsFunction: completeTopics,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownTopic(cmd.Root(), args)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

func unknownTopic(root *cobra.Command, args []string) error {
	try := "idemctl --help"
	if name := spell.Nearest(args[0], helpNames(root)); name != "" {
		try = "idemctl help " + name
	}
	return fail(exitUsage, try, "unknown topic %q", strings.Join(args, " "))
}

func helpNames(root *cobra.Command) []string {
	var names []string
	for _, cmd := range root.Commands() {
		if !cmd.Hidden {
			names = append(names, cmd.Name())
		}
	}
	return names
}

func completeTopics(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var names []string
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range helpNames(found) {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeCompletion makes cobra's completion command refuse shells that it does
// not know, for which it only helps.
func completeCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil || cmd == root {
		return
	}
	cmd.Example = "  idemctl completion bash > /etc/bash_completion.d/idemctl\n  source <(idemctl completion zsh)"
	cmd.Use, cmd.Args = "completion SHELL", cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return fail(exitUsage, "idemctl completion bash", "unknown shell %q: use bash, zsh, fish or powershell", args[0])
	}
}
