package idemhttp

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzCanonicalQuery: the shortcut changes nothing, the order of names and their
// spelling do not matter, and what is canonical stays as it is.
func FuzzCanonicalQuery(f *testing.F) {
	for _, seed := range []string{
		"", "a=1", "a=1&b=2", "b=2&a=1", "a=2&a=1", "a", "a=", "=1", "a=1&", "&a=1", "a=1&&b=2", "a=b=c", "a=%41", "a=1;b=2", "a+b=1", "ab=1&a=2", "a-=1&a=2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		canonical := canonicalQuery(raw)
		values, err := url.ParseQuery(raw)
		if err != nil {
			require.Equal(t, "?"+raw, canonical)
			return
		}
		require.Equal(t, values.Encode(), canonical)
		require.Equal(t, canonical, canonicalQuery(canonical))
	})
}
