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
		if found := firstKeys(ctx, s, prefix, nearestCandidates); len(found) > 0 {
			slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(spell.Distance(text, a), spell.Distance(text, b)) })
			return found[:min(len(found), limit)]
		}
	}
	return nil
}

func firstKeys(ctx context.Context, s idem.Store, prefix string, limit int) []string {
	var keys []string
	for rec, err := range s.Scan(ctx, idem.Query{Prefix: prefix, OmitValues: true}) {
		if err != nil && rec.Key == (idem.Key{}) || len(keys) == limit {
			break
		}
		if err == nil {
			keys = append(keys, rec.Key.String())
		}
	}
	return keys
}

const (
	completionKeys = 50
	completionTime = 500 * time.Millisecond
)

// completeKeys offers existing keys. It never waits for a file that is held:
// a shell without an answer is better than one that hangs.
func (a *app) completeKeys(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 && cmd.Name() != "purge" {
		return nil, directive
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	a.flags.lockTimeout = 0
	s, err := a.openRead(ctx)
	if err != nil {
		return nil, directive
	}
	defer s.Close()
	keys := firstKeys(ctx, s, prefix, completionKeys)
	return slices.DeleteFunc(keys, func(k string) bool { return render.ShellQuote(k) != k }), directive
}
