package cli

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
)

// filter selects records. All of its conditions must hold.
type filter struct {
	prefix        string
	states        []string
	kinds         []string
	olderThan     time.Duration
	expiresWithin time.Duration
	match         string
}

// addFlags adds the conditions that every command with a filter has.
func (f *filter) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.states, "state", nil, "only these `STATES`: "+strings.Join(stateNames(), ", "))
	flags.Var(newDurationFlag(&f.olderThan, 0), "older-than", "only records created longer ago, such as 10m or 30d")
	flags.StringVar(&f.match, "match", "", "only keys that match `GLOB`; * matches anything, slashes too")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
}

func (f *filter) validate() error {
	for _, state := range f.states {
		if !slices.Contains(stateNames(), state) {
			return usage("--state: unknown state %q: use %s", state, strings.Join(stateNames(), ", "))
		}
	}
	if _, err := path.Match(f.match, ""); err != nil {
		return usage("--match: %q is not a valid pattern", f.match)
	}
	return nil
}

// empty reports whether the filter selects everything.
func (f *filter) empty() bool {
	return f.prefix == "" && f.match == "" && !f.looksInside()
}

// looksInside reports whether a record must be read to be judged, which cannot
// be done with a damaged one.
func (f *filter) looksInside() bool {
	return len(f.states)+len(f.kinds) > 0 || f.olderThan > 0 || f.expiresWithin > 0
}

// query is the part of the filter that the store can apply.
func (f *filter) query() idem.Query {
	return idem.Query{Prefix: f.prefix, OmitValues: true, Expired: slices.Contains(f.states, stateExpired)}
}

// selects reports whether a record from query fulfils the rest of the filter.
func (f *filter) selects(e *entry, now time.Time) bool {
	switch {
	case f.match != "" && !matchGlob(f.match, e.Key.String()):
	case e.Damage != nil:
		return !f.looksInside()
	case len(f.states) > 0 && !slices.Contains(f.states, e.State):
	case len(f.kinds) > 0 && !slices.Contains(f.kinds, e.Kind):
	case f.olderThan > 0 && e.age(now) < f.olderThan:
	case f.expiresWithin > 0 && e.ExpiresAt.Sub(now) > f.expiresWithin:
	default:
		return true
	}
	return false
}

// matchGlob is path.Match without a meaning for slashes. The byte that takes
// their place cannot occur in a key.
func matchGlob(pattern, key string) bool {
	matched, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(key, "/", "\x01"))
	return err == nil && matched
}
