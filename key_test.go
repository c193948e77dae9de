package idem_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idembolt/idem"
)

func TestKeyValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		key    idem.Key
		reason idem.RejectReason // "" for a valid key
	}{
		{"shortest", idem.Key{Scope: "a", ID: "1"}, ""},
		{"every scope character", idem.Key{Scope: "azAZ09._:@-", ID: "1"}, ""},
		{"scope of 128 bytes", idem.Key{Scope: strings.Repeat("s", 128), ID: "1"}, ""},
		{"scope of 129 bytes", idem.Key{Scope: strings.Repeat("s", 129), ID: "1"}, idem.RejectTooLong},
		{"id of 255 bytes", idem.Key{Scope: "s", ID: strings.Repeat("i", 255)}, ""},
		{"id of 256 bytes", idem.Key{Scope: "s", ID: strings.Repeat("i", 256)}, idem.RejectTooLong},
		{"limits are bytes, not runes", idem.Key{Scope: "s", ID: strings.Repeat("é", 128)}, idem.RejectTooLong},
		{"zero", idem.Key{}, idem.RejectNoScope},
		{"no scope", idem.Key{ID: "1"}, idem.RejectNoScope},
		{"no id", idem.Key{Scope: "s"}, idem.RejectMissing},
		{"slash in scope", idem.Key{Scope: "a/b", ID: "1"}, idem.RejectCharset},
		{"space in scope", idem.Key{Scope: "a b", ID: "1"}, idem.RejectCharset},
		{"letter outside ASCII in scope", idem.Key{Scope: "é", ID: "1"}, idem.RejectCharset},
		{"invalid UTF-8 in scope", idem.Key{Scope: "\xff", ID: "1"}, idem.RejectCharset},
		{"NUL in scope", idem.Key{Scope: "a\x00", ID: "1"}, idem.RejectCharset},
		{"slash in id", idem.Key{Scope: "s", ID: "/a//b/"}, ""},
		{"space in id", idem.Key{Scope: "s", ID: " a b "}, ""},
		{"any script in id", idem.Key{Scope: "s", ID: "ключ-鍵-🔑"}, ""},
		{"replacement character in id", idem.Key{Scope: "s", ID: "\uFFFD"}, ""},
		{"NUL in id", idem.Key{Scope: "s", ID: "a\x00b"}, idem.RejectCharset},
		{"newline in id", idem.Key{Scope: "s", ID: "a\n"}, idem.RejectCharset},
		{"last C0 control", idem.Key{Scope: "s", ID: "\x1f"}, idem.RejectCharset},
		{"DEL", idem.Key{Scope: "s", ID: "\x7f"}, idem.RejectCharset},
		{"first C1 control", idem.Key{Scope: "s", ID: "\u0080"}, idem.RejectCharset},
		{"C1 next line", idem.Key{Scope: "s", ID: "\u0085"}, idem.RejectCharset},
		{"last C1 control", idem.Key{Scope: "s", ID: "\u009f"}, idem.RejectCharset},
		{"after C1", idem.Key{Scope: "s", ID: "\u00a0"}, ""},
		{"invalid UTF-8 in id", idem.Key{Scope: "s", ID: "\xff\xfe"}, idem.RejectCharset},
		{"cut rune in id", idem.Key{Scope: "s", ID: "a\xc3"}, idem.RejectCharset},
		{"surrogate in id", idem.Key{Scope: "s", ID: "\xed\xa0\x80"}, idem.RejectCharset},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.key.Validate()
			if tt.reason == "" {
				require.NoError(t, err)
				return
			}
			var bad *idem.KeyError
			require.ErrorAs(t, err, &bad)
			require.ErrorIs(t, err, idem.ErrInvalidKey)
			require.Equal(t, tt.reason, bad.Reason)
			require.Equal(t, tt.key, bad.Key)
			require.NotEmpty(t, bad.Detail)
			require.False(t, strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }),
				"the message does not repeat what a client sent: %q", err.Error())
		})
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text   string
		want   idem.Key
		reason idem.RejectReason
	}{
		{"charge/order-1", idem.Key{Scope: "charge", ID: "order-1"}, ""},
		{"a/b/c", idem.Key{Scope: "a", ID: "b/c"}, ""},
		{"a//", idem.Key{Scope: "a", ID: "/"}, ""},
		{"charge", idem.Key{}, idem.RejectNoScope},
		{"", idem.Key{}, idem.RejectNoScope},
		{"/", idem.Key{}, idem.RejectNoScope},
		{"/order-1", idem.Key{}, idem.RejectNoScope},
		{"charge/", idem.Key{}, idem.RejectMissing},
		{"a b/c", idem.Key{}, idem.RejectCharset},
		{"a/\x00", idem.Key{}, idem.RejectCharset},
		{"a/" + strings.Repeat("i", 256), idem.Key{}, idem.RejectTooLong},
	}
	for _, tt := range tests {
		got, err := idem.ParseKey(tt.text)
		if tt.reason == "" {
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.text, got.String())
			continue
		}
		var bad *idem.KeyError
		require.ErrorAs(t, err, &bad, tt.text)
		require.Equal(t, tt.reason, bad.Reason, tt.text)
	}
}

// Keys drawn from small alphabets come close to each other often.
func anyKey() *rapid.Generator[idem.Key] {
	return rapid.Custom(func(t *rapid.T) idem.Key {
		return idem.Key{
			Scope: rapid.OneOf(rapid.StringMatching(`[ab:]{1,3}`), rapid.StringMatching(`[a-zA-Z0-9._:@-]{1,128}`), rapid.String()).Draw(t, "scope"),
			ID:    rapid.OneOf(rapid.StringMatching(`[ab/:]{1,3}`), rapid.StringN(1, 63, 255), rapid.String()).Draw(t, "id"),
		}
	})
}

func TestKeyTextIsUnambiguous(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyKey().Draw(t, "a"), anyKey().Draw(t, "b")
		if a.Validate() != nil {
			return
		}
		back, err := idem.ParseKey(a.String())
		require.NoError(t, err)
		require.Equal(t, a, back)
		if b.Validate() == nil {
			require.Equal(t, a == b, a.String() == b.String())
		}
	})
}
