package render

import (
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Truncate cuts already escaped text to at most width columns. The cut is in
// the middle, with two thirds of the room before the "…": keys made by one
// program start alike and differ at their end, so cutting the end would show a
// column of equal keys. An escape such as \x1b and a letter with its combining
// marks are kept or dropped whole. Below one column the result is empty.
func Truncate(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	room := width - 1
	head := headWithin(s, room-room/3)
	return head + ellipsis + tailWithin(s[len(head):], room-Width(head))
}

func headWithin(s string, room int) string {
	end := 0
	for end < len(s) {
		size := clusterLen(s[end:])
		room -= Width(s[end : end+size])
		if room < 0 {
			break
		}
		end += size
	}
	return s[:end]
}

// tailWithin drops clusters from the front until the rest fits, which needs no
// walking backwards over escapes of unknown length.
func tailWithin(s string, room int) string {
	excess := Width(s) - room
	for excess > 0 {
		size := clusterLen(s)
		excess -= Width(s[:size])
		s = s[size:]
	}
	return s
}

// clusterLen is the length of the first thing in s that must not be cut: an
// escape or a character, with the combining marks after it.
func clusterLen(s string) int {
	size := escapeLen(s)
	if size == 0 {
		_, size = utf8.DecodeRuneInString(s)
	}
	for size < len(s) {
		r, next := utf8.DecodeRuneInString(s[size:])
		if runeWidth(r) != 0 {
			break
		}
		size += next
	}
	return size
}

// escapeLen is the length of the escape that s starts with, or 0.
func escapeLen(s string) int {
	if len(s) < 2 || s[0] != '\\' {
		return 0
	}
	digits := 0
	switch s[1] {
	case '\\', 'n', 'r', 't':
		return 2
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return 0
	}
	if len(s) < 2+digits || strings.Trim(s[2:2+digits], "0123456789abcdef") != "" {
		return 0
	}
	return 2 + digits
}
