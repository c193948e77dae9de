package cli

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
	"github.com/idembolt/idem/cmd/idemctl/internal/spell"
)

// nearestCandidates bounds how many keys are compared with one that was not
// found.
const nearestCandidates = 200

// nearestKeys returns up to limit existing keys that are most like text, best
// effort: of those that share its longest prefix, the ones with the fewest
// letters that differ.
func nearestKeys(ctx context.Context, s idem.Store, text string, limit int) []string {
	for prefix := text; prefix != ""; {
		_, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		if found := firstKeys(ctx, s, prefix, "", nearestCandidates); len(found) > 0 {
			slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(spell.Distance(text, a), spell.Distance(text, b)) })
			return found[:min(len(found), limit)]
		}
	}
	return nil
}

// firstKeys returns up to limit keys with the prefix, of records of a kind or, if
// that is "", of any.
func firstKeys(ctx context.Context, s idem.Store, prefix, kind string, limit int) []string {
	var keys []string
	for rec, err := range s.Scan(ctx, idem.Query{Prefix: prefix, OmitValues: true}) {
		if err != nil && rec.Key == (idem.Key{}) || len(keys) == limit {
			break
		}
		if err == nil && (kind == "" || rec.Kind == kind) {
			keys = append(keys, rec.Key.String())
		}
	}
	return keys
}

const (
	completionKeys = 50
	completionTime = 500 * time.Millisecond
)

// completeKeys offers existing keys.
func (a *app) completeKeys(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Name() != "purge" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(cmd, func(ctx context.Context, s *idem.BoltStore) []string {
		return firstKeys(ctx, s, prefix, "", completionKeys)
	})
}

// completeKind offers the keys of records of a kind.
func (a *app) completeKind(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.complete(cmd, func(ctx context.Context, s *idem.BoltStore) []string {
			return firstKeys(ctx, s, prefix, kind, completionKeys)
		})
	}
}

// complete offers what is found in the store, but for names that a shell would act
// on. It never waits for a file that is held: a shell without an answer is better
// than one that hangs.
func (a *app) complete(cmd *cobra.Command, find func(context.Context, *idem.BoltStore) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	a.flags.lockTimeout = 0
	s, err := a.openRead(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	found := find(ctx, s)
	return slices.DeleteFunc(found, func(name string) bool { return render.ShellQuote(name) != name }), cobra.ShellCompDirectiveNoFileComp
}
