package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/token"
)

type tokenCommand struct {
	*app
	scope   string
	subject string
	ttl     time.Duration
}

func newTokenCommand(a *app) *cobra.Command {
	return newFamily(&cobra.Command{
		Use:   "token",
		Short: "Issue, use up and inspect one-time tokens",
		Long: `One-time tokens, as package token makes them: of all who consume a token one
succeeds. A token is good in its scope, which names the form or the operation.

A token is a secret until it was used. In place of the argument - reads it from
standard input, which keeps it out of the shell's history and of lists of processes.`,
		Example: `  idemctl token issue --scope signup --ttl 15m
  idemctl token inspect - --scope signup < token.txt
  idemctl token consume - --scope signup < token.txt && ./sign-up.sh`,
	}, newTokenIssueCommand(a), newTokenConsumeCommand(a), newTokenInspectCommand(a))
}

func newTokenIssueCommand(a *app) *cobra.Command {
	c := &tokenCommand{app: a}
	cmd := &cobra.Command{
		Use:   "issue --scope SCOPE",
		Short: "Issue a token and print it",
		Long: `Issues a token and prints it, and nothing else, on standard output. It makes the
store if there is none yet. The file holds the hash of the token, not the token.`,
		Example: `  idemctl token issue --scope signup
  idemctl token issue --scope invite --ttl 24h --subject ada@example.com
  idemctl token issue --scope signup -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.issue(cmd.Context()) },
	}
	c.addFlags(cmd)
	cmd.Flags().StringVar(&c.subject, "subject", "", "who may consume it, as `TEXT`, such as a user's id")
	cmd.Flags().Var(newDurationFlag(&c.ttl, token.DefaultTTL), "ttl", fmt.Sprintf("how long it is good, %s to %s", token.MinTTL, token.MaxTTL))
	return cmd
}

func newTokenConsumeCommand(a *app) *cobra.Command {
	c := &tokenCommand{app: a}
	cmd := &cobra.Command{
		Use:   "consume {TOKEN | -} --scope SCOPE",
		Short: "Use a token up",
		Long: `Uses a token up. Of all who try exactly one gets exit code 0.

Exit code 1 means that the token was used before, has expired or was issued to
another subject, 3 that it is unknown in this scope. The message says which.`,
		Example: `  idemctl token consume - --scope signup < token.txt && ./sign-up.sh
  idemctl token consume "$TOKEN" --scope invite --subject ada@example.com`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.consume(cmd.Context(), args[0]) },
	}
	c.addFlags(cmd)
	cmd.Flags().StringVar(&c.subject, "subject", "", "whom it was issued to, as `TEXT`")
	return cmd
}

func newTokenInspectCommand(a *app) *cobra.Command {
	c := &tokenCommand{app: a}
	cmd := &cobra.Command{
		Use:   "inspect {TOKEN | -} --scope SCOPE",
		Short: "Describe a token and leave it as it is",
		Long: `Says whether a token is open, used or expired, and whether it was issued to a
subject. The token stays as it is.

Exit code 3 means that it is unknown in this scope.`,
		Example: `  idemctl token inspect - --scope signup < token.txt
  idemctl token inspect "$TOKEN" --scope signup -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.inspect(cmd.Context(), args[0]) },
	}
	c.addFlags(cmd)
	return cmd
}

func (c *tokenCommand) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&c.scope, "scope", "", "the `SCOPE` that the token is good in (required)")
}

// begin checks what all three need, before anything is read.
func (c *tokenCommand) begin(name string) (look, error) {
	l, err := c.look("token " + name)
	switch {
	case err != nil:
		return l, err
	case c.scope == "":
		return l, usage("--scope is required: it names the form or the operation")
	}
	return l, idem.Key{Scope: c.scope, ID: "any"}.Validate()
}
