package render

import (
	"strings"
	"unicode/utf8"
)

// ShellQuote makes text one word of a shell's command line that is safe to show
// and safe to run: nothing in it is expanded, and the word is the text, byte for
// byte. Text that is visible as it stands is quoted as POSIX has it. Any other
// becomes $'…', which bash, zsh and ksh read, with the characters that [Escape]
// would not let through as \xNN, a byte each: \uNNNN depends on the locale.
func ShellQuote(s string) string {
	visible, plain := true, s != ""
	for rest := s; rest != ""; {
		size, unsafe := unsafeRune(rest)
		visible = visible && !unsafe
		plain = plain && plainInShell(rest[0])
		rest = rest[size:]
	}
	switch {
	case plain:
		return s
	case visible:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return ansiQuote(s)
}

func plainInShell(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:@/+,=-", c) >= 0
}

func ansiQuote(s string) string {
	out := []byte(`$'`)
	hex := false // the last thing was an escape, which a further digit would join
	for s != "" {
		size, unsafe := unsafeRune(s)
		switch {
		case unsafe:
			for i := range size {
				out = appendHex(append(out, `\x`...), uint64(s[i]), 2)
			}
		case s[0] == '\'' || s[0] == '\\':
			out = append(out, '\\', s[0])
		case hex && s[0] < utf8.RuneSelf && strings.IndexByte("0123456789abcdefABCDEF", s[0]) >= 0:
			out = append(out, `'$'`...) // ksh reads as many digits as there are
			fallthrough
		default:
			out = append(out, s[:size]...)
		}
		hex, s = unsafe, s[size:]
	}
	return string(append(out, '\''))
}
