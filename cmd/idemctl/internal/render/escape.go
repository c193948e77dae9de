package render

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes untrusted text safe to print on a terminal, on one line.
//
// Control characters (C0, DEL, C1), bytes that are not UTF-8, and characters
// that are invisible or reorder their neighbours (Unicode Cf, Zl, Zp and
// default-ignorable ones, so every bidi control) become \n, \r, \t, \x1b,
// \xff, \u202e or \U000e0041. A byte that is no UTF-8 is \xNN and a C1 control
// \u00NN, so the two stay apart. Joiners inside emoji are escaped too: that is
// the price of refusing invisible text.
//
// The result is reversible. A backslash is doubled where it would otherwise
// read as the start of an escape: before another backslash, before one of
// "nrtxuU" and before an escaped character. Elsewhere it stays single, so most
// Windows paths and regular expressions look as they were typed.
//
// Text that needs no change is returned as it is, without allocation.
func Escape(s string) string {
	start := 0
	for start < len(s) {
		size, needs := inspect(s[start:])
		if needs {
			break
		}
		start += size
	}
	if start == len(s) {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	out = append(out, s[:start]...)
	for i := start; i < len(s); {
		size, needs := inspect(s[i:])
		if needs {
			out = appendEscape(out, s[i:i+size])
		} else {
			out = append(out, s[i:i+size]...)
		}
		i += size
	}
	return string(out)
}

// inspect returns the size of the first character of s, and whether it must be
// escaped where it stands.
func inspect(s string) (size int, needs bool) {
	if s[0] == '\\' {
		return 1, backslashIsAmbiguous(s[1:])
	}
	return unsafeRune(s)
}

func backslashIsAmbiguous(rest string) bool {
	if rest == "" {
		return false
	}
	if strings.IndexByte(`\nrtxuU`, rest[0]) >= 0 {
		return true
	}
	_, next := unsafeRune(rest)
	return next
}

// unsafeRune reports the size of the first character of s and whether it may
// never reach a terminal as it is.
func unsafeRune(s string) (size int, unsafe bool) {
	if c := s[0]; c < utf8.RuneSelf {
		return 1, c < ' ' || c == 0x7f
	}
	r, size := utf8.DecodeRuneInString(s)
	return size, (r == utf8.RuneError && size == 1) || invisible(r)
}

// invisible covers the characters beyond ASCII that control a terminal, hide
// or reorder text. The default-ignorable ones outside Cf (Hangul fillers, for
// example) print as nothing and would make two keys look the same.
func invisible(r rune) bool {
	return r <= 0x9f && r >= 0x7f ||
		unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

func appendEscape(out []byte, char string) []byte {
	switch char {
	case "\n":
		return append(out, `\n`...)
	case "\r":
		return append(out, `\r`...)
	case "\t":
		return append(out, `\t`...)
	case `\`:
		return append(out, `\\`...)
	}
	if len(char) == 1 {
		return appendHex(append(out, `\x`...), uint64(char[0]), 2)
	}
	r, _ := utf8.DecodeRuneInString(char)
	if r > 0xffff {
		return appendHex(append(out, `\U`...), uint64(r), 8)
	}
	return appendHex(append(out, `\u`...), uint64(r), 4)
}

func appendHex(out []byte, value uint64, digits int) []byte {
	hex := strconv.FormatUint(value, 16)
	for range digits - len(hex) {
		out = append(out, '0')
	}
	return append(out, hex...)
}

// escapeInvalid replaces only the bytes of s that are not UTF-8, by \xNN. It
// is for formats that carry control characters but must be valid text, and it
// is not reversible: text that already held such a sequence looks the same.
func escapeInvalid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			out = appendEscape(out, s[i:i+1])
		} else {
			out = append(out, s[i:i+size]...)
		}
		i += size
	}
	return string(out)
}
